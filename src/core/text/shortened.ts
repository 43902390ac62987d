import { beginning } from './pieces.ts'

/** The text, or its first `most` characters and `mark`; splits no surrogate pair. */
export function shortened(text: string, most: number, mark = '…'): string {
  return text.length <= most ? text : beginning(text, most) + mark
}
