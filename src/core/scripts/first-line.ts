import { shortened } from '../text/shortened.ts'

const longest = 80

/** What tells a script without a name from others in a list: its first line that is no comment; null where there is none. */
export function firstLine(script: string, most = longest): string | null {
  for (const line of script.split('\n', 200)) {
    const text = line.replaceAll(/\p{Cc}+/gu, ' ').trim()
    if (text !== '' && !text.startsWith('#')) return shortened(text, most)
  }
  return null
}
