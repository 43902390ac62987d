/** A path as routes declare it, and the methods that it has. */
interface KnownPath {
  readonly url: string
  readonly methods: Set<string>
}

export interface KnownPaths {
  add(url: string, method: string | readonly string[]): void
  /** The path that a request's URL belongs to, whatever its method. */
  find(requestUrl: string): KnownPath | undefined
}

const parameter = /:\w+/g

function pattern(url: string): RegExp {
  const literal = url.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll(parameter, '[^/]*')}$`)
}

/** As the router reads a path: up to its query, with what is escaped in it, but for the slash, unescaped. */
function pathOf(requestUrl: string): string {
  const path = requestUrl.split(/[?#]/, 1)[0] ?? ''
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

/**
 * Which paths there are. Asked when the router has found no route: to register every other method of every path with it
 * took longer than all the rest of the application.
 */
export function createKnownPaths(): KnownPaths {
  const paths = new Map<string, KnownPath>()
  let patterns: [RegExp, KnownPath][] | undefined

  /** A parameter stands for any text, so what is spelt out goes first. */
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
