/** The text, or its first `most` characters and `mark`; splits no surrogate pair. */
export function shortened(text: string, most: number, mark = '…'): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  const isSplit = last >= 0xd800 && last <= 0xdbff
  return `${text.slice(0, isSplit ? most - 1 : most)}${mark}`
}
