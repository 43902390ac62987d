interface Attachment {
  /** It was away before. */
  readonly isBack: boolean
  /** Characters that are missing. */
  readonly omitted: number
  /** What is new of those who read along. */
  readonly watchers: string | null
}

/** All that is to be said of an attachment; nothing of it hides another. */
export function attachedText({ isBack, omitted, watchers }: Attachment): string {
  const sentences: string[] = []
  if (isBack) sentences.push(omitted > 0 ? 'Attached again' : 'Attached again; nothing was lost')
  if (omitted > 0) sentences.push(`${omitted} characters of earlier output are no longer kept`)
  if (watchers !== null) sentences.push(watchers)
  return sentences.join('. ')
}
