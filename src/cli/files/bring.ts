import { statSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import type { ClientFileService } from '../../client/services/files.ts'
import { RsmError } from '../../core/errors.ts'
import type { Fetch } from '../../core/protocol/http/files.ts'
import { makeDirectory, removeEmpty, whyUnwritable } from '../../disk/named-files.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { fileNameOf } from '../output/outdir.ts'
import { sanitizeLine } from '../text/sanitize.ts'

/** Entries of the trees of one copy, shared by its hosts; a host may always have `leastShare`. */
const mostEntries = 1_000_000
const leastShare = 10_000

/** Entries that the tree of one of `hostCount` hosts may have: a host must not use up the inodes of the machine that copies. */
export const shareOfEntries = (hostCount: number): number =>
  Math.max(leastShare, Math.floor(mostEntries / hostCount))

/** Where what comes from hosts goes to: a directory with one for each of them, or one file of one host. */
export interface Destination {
  readonly target: string
  readonly isFile: boolean
  /** Directories that were made for it. */
  readonly made?: readonly string[]
}

/** Errors: `usage`, where it can't be done. */
function within<T>(directory: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new RsmError('usage', `can't write into ${directory}: ${whyUnwritable(error)}`, { cause: error })
  }
}

const make = (directory: string): string[] => within(directory, () => makeDirectory(directory))

/** One file of one host takes the name that is not one of a directory, as with scp. Errors: `usage`. */
export function destinationOf(target: string, kind: Fetch['kind'], hostCount: number): Destination {
  const found = within(dirname(target), () => statSync(target, { throwIfNoEntry: false }))
  const isDirectory = found?.isDirectory() === true
  if (found !== undefined && !isDirectory && (hostCount > 1 || kind === 'TREE' || !found.isFile()))
    throw new RsmError('usage', `${target} is not a directory`, {
      hint: 'name a directory: it gets one for each host',
    })
  const isFile = kind === 'FILE' && hostCount === 1 && !isDirectory && !target.endsWith('/')
  return { target, isFile, made: make(isFile ? dirname(target) : target) }
}

/** What has come from a host; `error`: what is to be said of it all the same. */
interface Come {
  readonly hostId: number
  readonly hostname: string
  /** Where it is there: whatever a server says, its last name leads out of no directory. */
  readonly path: string
  readonly error: string | null
}

const placeOf = ({ target, isFile }: Destination, { hostname, path }: Come): string =>
  isFile ? target : join(target, fileNameOf(hostname), basename(normalize(`/${path}`)))

/** Brings what a task has fetched from these hosts to its places here, and says where. Errors: `usage` where one of them can't be written. */
export async function bring(
  command: BaseCommand,
  files: Pick<ClientFileService, 'fetched'>,
  { taskId, kind }: { readonly taskId: string; readonly kind: Fetch['kind'] },
  hosts: readonly Come[],
  destination: Destination,
): Promise<void> {
  const { receive } = await import('./receive.ts')
  const share = shareOfEntries(hosts.length)
  let unwritable: RsmError | undefined
  for (const host of hosts) {
    const { hostId, hostname, error } = host
    const place = placeOf(destination, host)
    let made: readonly string[] = []
    try {
      made = make(dirname(place))
      const { bytes, warning } = await receive(
        command,
        files,
        { taskId, hostId, hostname, kind, mostEntries: share },
        place,
      )
      const notes = [error, warning].filter((note) => note !== null).map((note) => `: ${sanitizeLine(note)}`)
      command.done(`${sanitizeLine(`${hostname}: ${place}`)} (${bytes})${notes.join('')}`)
    } catch (fault) {
      removeEmpty(made)
      // One place that can't be written keeps nobody else's file away.
      if (!(fault instanceof RsmError) || fault.code !== 'usage') throw fault
      unwritable ??= fault
    }
  }
  if (unwritable !== undefined) throw unwritable
}
