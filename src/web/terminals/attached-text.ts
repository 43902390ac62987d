interface Attachment {
  readonly isBack: boolean
  /** Characters. */
  readonly omitted: number
  readonly watchers: string | null
}

/** Complete message about an attachment, so that no part hides another. */
export function attachedText({ isBack, omitted, watchers }: Attachment): string {
  const sentences: string[] = []
  if (isBack) sentences.push(omitted > 0 ? 'Reattached' : 'Reattached; nothing was lost')
  if (omitted > 0) sentences.push(`${omitted} characters of earlier output are no longer kept`)
  if (watchers !== null) sentences.push(watchers)
  return sentences.join('. ')
}
