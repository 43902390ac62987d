/** The class of a line of a unified diff: what comes, what goes, and where; empty of all other lines. */
export function diffClass(line: string): string {
  if (/^(?:---|\+\+\+) /.test(line)) return 'diff-file'
  if (line.startsWith('@@ ')) return 'diff-place'
  if (line.startsWith('+')) return 'diff-new'
  return line.startsWith('-') ? 'diff-old' : ''
}
