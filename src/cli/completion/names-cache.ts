import { createHash } from 'node:crypto'
import { chmodSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { baseDirectory } from '../contexts/private-files.ts'
import { makeNamedDirectory } from '../input/named-path.ts'

/** Milliseconds for which names are fresh. */
const life = 10_000
/** Milliseconds for which older names stand in for a server that does not answer. */
const mostAge = 600_000
const mostBytes = 8 * 1024 * 1024

/** A name that a server knows, and what helps to tell it from others. */
export interface Named {
  readonly name: string
  readonly about: string
}

/** The lists of names that a server is asked for. Groups are what hosts have in common: `tag:role:web`, `os:linux`. */
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

/** Names as they are looked up; never rejects: what can't be known is an empty list. */
export type Lookup = (listed: Listed | 'contexts') => Promise<readonly Named[]>

interface Kept {
  /** When the server was last asked, and when it last answered; milliseconds since 1970. */
  readonly asked: number
  readonly answered: number
  readonly owner: string
  readonly names: readonly Named[]
}

/**
 * Names of one server as one user sees them, kept for a few seconds: a directory of mode 0700, a file of mode 0600 for each list. A file
 * that can't be read or written is none. It holds no token, only a digest that tells whose names they are.
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

  /** What is kept, and whether it is worth asking again; undefined where there is nothing of use. */
  read(listed: Listed): { readonly names: readonly Named[]; readonly isFresh: boolean } | undefined {
    const kept = this.#read(listed)
    const now = this.#now()
    // A clock that was set back must not make an entry last forever.
    if (kept === undefined || now < kept.asked || now - kept.answered > mostAge) return undefined
    return { names: kept.names, isFresh: now - kept.asked < life }
  }

  write(listed: Listed, names: readonly Named[]): void {
    const now = this.#now()
    this.#write(listed, { asked: now, answered: now, owner: this.#owner, names })
  }

  /** Remembers that the server did not answer, so that not every key waits for it. */
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
      // Without a cache it is slower, and that is all.
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
