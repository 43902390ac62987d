const longestPath = 4095

/** Fault of a path on a host, or null: it must be absolute, without `..`, and not too long (contract §13). */
export function pathFault(path: string, kind: 'FILE' | 'TREE'): string | null {
  if (!path.startsWith('/')) return 'must be absolute: begin it with /'
  if (path.includes('\0')) return 'must not contain NUL'
  if (/\p{Surrogate}/u.test(path)) return 'must be well-formed Unicode'
  if (path.split('/').includes('..')) return 'must not contain ".."'
  if (new TextEncoder().encode(path).length > longestPath) return `must have at most ${longestPath} bytes`
  if (kind === 'FILE' && /\/\.?$/.test(path)) return 'names a directory: add the name of the file'
  return null
}

/** Expands a path for a host: `%h` is its name, `%%` a percent sign. Null if any other character follows a `%`. */
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

/** Like `pathFault`, for a path as users write it, with `%h` for the name of any host. */
export function writtenPathFault(path: string, kind: 'FILE' | 'TREE'): string | null {
  const expanded = expandPath(path, 'host')
  if (expanded === null)
    return 'has a % before a letter other than h: %h is the name of the host, %% a percent sign'
  return pathFault(path, kind) ?? pathFault(expanded, kind)
}
