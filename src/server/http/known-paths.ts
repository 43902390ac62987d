interface KnownPath {
  readonly url: string
  readonly methods: Set<string>
}

export interface KnownPaths {
  add(url: string, method: string | readonly string[]): void
  /** The path that a request's URL matches, for any method. */
  find(requestUrl: string): KnownPath | undefined
}

const parameter = /:\w+/g

function pattern(url: string): RegExp {
  const literal = url.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll(parameter, '[^/]*')}$`)
}

/** Path of a URL as the router reads it: without query, unescaped except for slashes. */
function pathOf(requestUrl: string): string {
  const path = requestUrl.split(/[?#]/, 1)[0] ?? ''
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

/** Declared paths, for 405: registering all other methods with the router took longer than the rest of the app. */
export function createKnownPaths(): KnownPaths {
  const paths = new Map<string, KnownPath>()
  let patterns: [RegExp, KnownPath][] | undefined

  /** Paths with fewer parameters first, because a parameter matches any text. */
  const ordered = () =>
    [...paths.values()]
      .sort((one, other) => parameters(one.url) - parameters(other.url))
      .map((path): [RegExp, KnownPath] => [pattern(path.url), path])

  return {
    add(url, method) {
      const known = paths.get(url) ?? { url, methods: new Set() }
      paths.set(url, known)
      for (const one of [method].flat()) known.methods.add(one)
      patterns = undefined
    },
    find(requestUrl) {
      const path = pathOf(requestUrl)
      patterns ??= ordered()
      return patterns.find(([matches]) => matches.test(path))?.[1]
    },
  }
}

const parameters = (url: string) => url.match(parameter)?.length ?? 0
