import { useEffect } from 'preact/hooks'

/** What the browser's tab says. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · rsm`
  }, [title])
}

/** Gives the browser a file to keep. */
export function save(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

/** To the clipboard; where the page has no secure context, as on plain HTTP, by the old way, which copies what is selected. */
export function copyText(text: string): void {
  if (text === '') return
  const oldWay = () => document.execCommand('copy')
  if (navigator.clipboard === undefined) oldWay()
  else navigator.clipboard.writeText(text).catch(oldWay)
}
