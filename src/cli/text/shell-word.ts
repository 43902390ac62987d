/** A word as a shell takes it for one, quoted where it has to be: for lines that people copy. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
