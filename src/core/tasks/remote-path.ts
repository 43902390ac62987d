/** Bytes of a path on a host, as the system there takes it. */
const longestPath = 4095

/** What is wrong with a path on a host, or null: absolute, without `..`, and of a length that hosts take (contract §13). */
export function pathFault(path: string, kind: 'FILE' | 'TREE'): string | null {
  if (!path.startsWith('/')) return 'must be absolute: it has to begin with /'
  if (path.includes('\0')) return 'must not hold the character NUL'
  if (/\p{Surrogate}/u.test(path)) return 'must be well-formed Unicode'
  if (path.split('/').includes('..')) return 'must not hold ".."'
  if (new TextEncoder().encode(path).length > longestPath) return `must have at most ${longestPath} bytes`
  if (kind === 'FILE' && /\/\.?$/.test(path)) return 'names a directory: add the name of the file'
  return null
}

/** What of a path the server replaces for each host: `%h` is its name, `%%` a percent sign. Null where another letter follows a `%`. */
export function expandPath(path: string, hostname: string): string | null {
  let isKnown = true
  const expanded = path.replaceAll(/%(.?)/gs, (_, letter: string) => {
    if (letter === 'h') return hostname
    if (letter === '%') return '%'
    isKnown = false
    return ''
  })
  return isKnown ? expanded : null
}

/** As `pathFault`, of a path as users write it, with `%h` for the name of any host. */
export function writtenPathFault(path: string, kind: 'FILE' | 'TREE'): string | null {
  const expanded = expandPath(path, 'host')
  if (expanded === null)
    return 'has a % before another letter than h: %h is the name of the host, %% a percent sign'
  return pathFault(path, kind) ?? pathFault(expanded, kind)
}
