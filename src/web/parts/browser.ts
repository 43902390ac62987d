import { useEffect } from 'preact/hooks'

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · rsm`
  }, [title])
}

export function save(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

/** Copies to the clipboard; without a secure context (plain HTTP), copies the selection. */
export function copyText(text: string): void {
  if (text === '') return
  const oldWay = () => document.execCommand('copy')
  if (navigator.clipboard === undefined) oldWay()
  else navigator.clipboard.writeText(text).catch(oldWay)
}
