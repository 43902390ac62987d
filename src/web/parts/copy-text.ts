/** To the clipboard; where the page has no secure context, as on plain HTTP, by the old way, which copies what is selected. */
export function copyText(text: string): void {
  if (text === '') return
  const oldWay = () => document.execCommand('copy')
  if (navigator.clipboard === undefined) oldWay()
  else navigator.clipboard.writeText(text).catch(oldWay)
}
