import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { writeFileDurably } from '../../disk/durable.ts'

/** Which store a data directory was used with that does not lie in it. */
interface Elsewhere {
  /** For people, without a password. */
  readonly store: string
  readonly storeId: string
}

const fileName = 'postgres.json'

/** Null where the directory was used with none, or is not there. Errors: `forbidden` where it is another user's. */
async function read(path: string): Promise<Elsewhere | null> {
  const text = await readFile(join(path, fileName), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
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
      hint: 'remove it if this directory is the one of this server',
      cause,
    })
  }
}

/** Errors: `conflict` where the directory was used with another store: that would be a first start and make another admin. */
export async function refuseOther(path: string, now: Elsewhere): Promise<void> {
  const before = await read(path)
  if (before !== null && before.storeId !== now.storeId)
    throw new RsmError(
      'conflict',
      `data directory ${path} was used with the store ${before.storeId} at ${before.store}; ${now.store} has the store ${now.storeId}`,
      { hint: `mend --store, name another --data-dir, or remove ${join(path, fileName)} if this is meant` },
    )
}

/** Notes in the data directory at `path` that its server has this store. */
export async function noteElsewhere(path: string, now: Elsewhere): Promise<void> {
  const before = await read(path)
  if (before?.storeId === now.storeId && before.store === now.store) return
  await writeFileDurably(join(path, fileName), `${JSON.stringify(now)}\n`)
}

/** Errors: `conflict` where the directory holds a store itself. */
export async function refuseStoreInside(path: string): Promise<void> {
  const isThere = await access(join(path, 'store')).then(
    () => true,
    () => false,
  )
  if (!isThere) return
  throw new RsmError(
    'conflict',
    `data directory ${path} has a store of its own, which --store would leave aside`,
    {
      hint: 'name another directory with --data-dir, or start without --store',
    },
  )
}

/** Errors: `conflict` for a directory whose server has its store in PostgreSQL; `hint` says what to do instead. */
export async function refuseElsewhere(path: string, hint: string): Promise<void> {
  const found = await read(path)
  if (found === null) return
  throw new RsmError('conflict', `data directory ${path} is of a server whose store is ${found.store}`, {
    hint,
  })
}
