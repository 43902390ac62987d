import { createHash } from 'node:crypto'
import { chmodSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { baseDirectory } from '../contexts/private-files.ts'
import { makeNamedDirectory } from '../input/named-path.ts'

/** Names are fresh for this long, in milliseconds. */
const life = 10_000
/** Stale names are used this long if the server does not answer, in milliseconds. */
const mostAge = 600_000
const mostBytes = 8 * 1024 * 1024

export interface Named {
  readonly name: string
  readonly about: string
}

/** Lists of names on a server. Groups: `tag:role:web`, `os:linux`, …. */
export type Listed =
  | 'hosts'
  | 'groups'
  | 'clusters'
  | 'scripts'
  | 'schedules'
  | 'uploads'
  | 'tasks'
  | 'users'
  | 'tokens'
  | 'enrollments'
  | 'webhooks'
  | 'recordings'
  | 'sessions'

/** Looks up names; never rejects: resolves with an empty list on failure. */
export type Lookup = (listed: Listed | 'contexts') => Promise<readonly Named[]>

interface Kept {
  /** Times of the last request and the last response, milliseconds since 1970. */
  readonly asked: number
  readonly answered: number
  readonly owner: string
  readonly names: readonly Named[]
}

/**
 * Cache of a server's names as one user sees them: a directory of mode 0700 with a file of mode 0600 per list. Ignores files that
 * cannot be read or written. Stores a digest of the token to identify the user, never the token.
 */
export class NamesCache {
  readonly #directory: string
  readonly #server: string
  readonly #owner: string
  readonly #now: () => number

  constructor(
    url: string,
    token: string,
    env: NodeJS.ProcessEnv = process.env,
    now: () => number = Date.now,
  ) {
    this.#directory = join(baseDirectory('CACHE', env), 'rsm', 'names')
    this.#server = digest(url)
    this.#owner = digest(`${url}\n${token}`)
    this.#now = now
  }

  /** Cached names, and whether they are fresh; undefined if there are none or they are too old. */
  read(listed: Listed): { readonly names: readonly Named[]; readonly isFresh: boolean } | undefined {
    const kept = this.#read(listed)
    const now = this.#now()
    // If the clock was set back, the entry would never expire.
    if (kept === undefined || now < kept.asked || now - kept.answered > mostAge) return undefined
    return { names: kept.names, isFresh: now - kept.asked < life }
  }

  write(listed: Listed, names: readonly Named[]): void {
    const now = this.#now()
    this.#write(listed, { asked: now, answered: now, owner: this.#owner, names })
  }

  /** Records that the server did not answer, so that the next key does not wait for it again. */
  failed(listed: Listed): void {
    const now = this.#now()
    const { answered, names } = this.#read(listed) ?? { answered: now, names: [] }
    this.#write(listed, { asked: now, answered, owner: this.#owner, names })
  }

  #path(listed: Listed): string {
    return join(this.#directory, `${this.#server}.${listed}.json`)
  }

  #read(listed: Listed): Kept | undefined {
    try {
      const path = this.#path(listed)
      if (statSync(path).size > mostBytes) return undefined
      const kept: unknown = JSON.parse(readFileSync(path, 'utf8'))
      return isKept(kept) && kept.owner === this.#owner ? kept : undefined
    } catch {
      return undefined
    }
  }

  #write(listed: Listed, kept: Kept): void {
    const path = this.#path(listed)
    const temporary = `${path}.${process.pid}`
    try {
      makeNamedDirectory(this.#directory, 'XDG_CACHE_HOME', 0o700)
      chmodSync(this.#directory, 0o700)
      try {
        writeFileSync(temporary, JSON.stringify(kept), { mode: 0o600 })
        renameSync(temporary, path)
      } finally {
        rmSync(temporary, { force: true })
      }
    } catch {
      // Works without a cache, only slower.
    }
  }
}

function isKept(value: unknown): value is Kept {
  const { asked, answered, names } = (value ?? {}) as Partial<Kept>
  return (
    [asked, answered].every(Number.isFinite) &&
    Array.isArray(names) &&
    (names as unknown[]).every((each) => {
      const { name, about } = (each ?? {}) as Partial<Named>
      return typeof name === 'string' && typeof about === 'string'
    })
  )
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
