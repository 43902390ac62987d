import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { isMissing, writeFileDurably } from '../../disk/durable.ts'

/** Store outside the data directory that the directory was used with. */
interface Elsewhere {
  /** For people, without a password. */
  readonly store: string
  readonly storeId: string
}

const fileName = 'postgres.json'

/** Null if the directory was used with none, or is missing. Errors: `forbidden` if another user's. */
async function read(path: string): Promise<Elsewhere | null> {
  const text = await readFile(join(path, fileName), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (isMissing(error) || error.code === 'ENOTDIR') return null
    if (error.code !== 'EACCES') throw error
    throw new RsmError('forbidden', `the data directory ${path} belongs to another user`, {
      hint: 'run this as the user that the server runs as, or as root',
      cause: error,
    })
  })
  if (text === null) return null
  try {
    return JSON.parse(text) as Elsewhere
  } catch (cause) {
    throw new RsmError('unavailable', `${join(path, fileName)} is damaged`, {
      hint: 'remove it if this directory belongs to this server',
      cause,
    })
  }
}

/** Errors: `conflict` if it was used with another store: a first start would create another admin. */
export async function refuseOther(path: string, now: Elsewhere): Promise<void> {
  const before = await read(path)
  if (before !== null && before.storeId !== now.storeId)
    throw new RsmError(
      'conflict',
      `data directory ${path} was used with the store ${before.storeId} at ${before.store}; ${now.store} has the store ${now.storeId}`,
      {
        hint: `correct --store, name another --data-dir, or remove ${join(path, fileName)} if this is intended`,
      },
    )
}

/** Notes in the data directory at `path` which store its server uses. */
export async function noteElsewhere(path: string, now: Elsewhere): Promise<void> {
  const before = await read(path)
  if (before?.storeId === now.storeId && before.store === now.store) return
  await writeFileDurably(join(path, fileName), `${JSON.stringify(now)}\n`)
}

/** Errors: `conflict` if the directory itself holds a store. */
export async function refuseStoreInside(path: string): Promise<void> {
  const isThere = await access(join(path, 'store')).then(
    () => true,
    () => false,
  )
  if (!isThere) return
  throw new RsmError(
    'conflict',
    `data directory ${path} has a store of its own, which --store would ignore`,
    {
      hint: 'name another directory with --data-dir, or start without --store',
    },
  )
}

/**
 * Errors: `conflict` if the directory's server has its store in PostgreSQL; `hint` says what to do instead.
 */
export async function refuseElsewhere(path: string, hint: string): Promise<void> {
  const found = await read(path)
  if (found === null) return
  throw new RsmError('conflict', `data directory ${path} belongs to a server whose store is ${found.store}`, {
    hint,
  })
}
