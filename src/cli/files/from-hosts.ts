import { statSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import type { Client } from '../../client/client.ts'
import type { ClientFileService } from '../../client/services/files.ts'
import { RsmError } from '../../core/errors.ts'
import type { Fetch } from '../../core/protocol/http/files.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { expandPath } from '../../core/tasks/remote-path.ts'
import { makeDirectory, removeEmpty, whyUnwritable } from '../../disk/named-files.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { ifGiven } from '../flags/checks.ts'
import type { CopyFlags } from '../flags/copy.ts'
import { parseBytes } from '../input/values.ts'
import { fileNameOf } from '../output/outdir.ts'
import type { Transfer } from '../task/runnable.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { checkPath, type FromHosts, refuseOptions } from './copy-order.ts'

/** Entries of all trees of one copy, shared by its hosts; each host may have at least `leastShare`. */
const mostEntries = 1_000_000
const leastShare = 10_000

/** `cp` from hosts. Errors: `usage`, `invalid`. */
export function fromHosts(
  command: BaseCommand,
  client: () => Promise<Client>,
  { from, target }: FromHosts,
  flags: CopyFlags,
): Transfer {
  refuseOptions(flags, ['mode', 'owner', 'backup', 'dry-run', 'diff', 'secret'], 'to')
  if (flags.detach)
    throw new RsmError('usage', `--detach does not wait, so nothing would be written to ${target}`)
  const kind = flags.recursive ? 'TREE' : 'FILE'
  const { path } = from
  if (kind === 'FILE' && path.endsWith('/'))
    throw new RsmError('usage', `${path} is a directory`, {
      hint: 'to copy a directory with its content: -r',
    })
  checkPath('fetch.path', path, kind)
  const maxSize = ifGiven(flags['max-size'], (text) => parseBytes('--max-size', text))
  if (maxSize === 0) throw new RsmError('usage', '--max-size takes a size of at least 1 byte, not 0')
  const fetch: Fetch = {
    path,
    kind,
    ...(flags.follow && { follow: true }),
    ...(maxSize !== undefined && { maxSize }),
  }
  let destination: Destination = { target, isFile: false }
  return {
    type: 'FETCH',
    text: `copy ${path} to ${target}`,
    params: [],
    prepare: async (hostCount) => {
      destination = destinationOf(target, kind, hostCount)
      return { fetch }
    },
    received: async ({ taskId, results }: Task) => {
      if (destination.isFile && results.length > 1)
        throw new RsmError('usage', `${results.length} hosts cannot be copied to one file: ${target}`, {
          hint: `for a directory: ${target}/`,
        })
      const come = results
        .filter(({ status }) => status === 'SUCCESS')
        .map((result) => ({ ...result, path: expandPath(path, result.hostname) ?? path }))
      await bring(command, (await client()).files, { taskId, kind }, come, destination)
    },
    close: async () => removeEmpty(destination.made ?? []),
  }
}

/** Local destination: a directory with one subdirectory per host, or one file of one host. */
interface Destination {
  readonly target: string
  readonly isFile: boolean
  /** Directories created for it. */
  readonly made?: readonly string[]
}

/** One file of one host takes the target's name, unless that is a directory, as with scp. Errors: `usage`. */
function destinationOf(target: string, kind: Fetch['kind'], hostCount: number): Destination {
  const found = within(dirname(target), () => statSync(target, { throwIfNoEntry: false }))
  const isDirectory = found?.isDirectory() === true
  if (found !== undefined && !isDirectory && (hostCount > 1 || kind === 'TREE' || !found.isFile()))
    throw new RsmError('usage', `${target} is not a directory`, {
      hint: 'name a directory: it gets one for each host',
    })
  const isFile = kind === 'FILE' && hostCount === 1 && !isDirectory && !target.endsWith('/')
  return { target, isFile, made: make(isFile ? dirname(target) : target) }
}

/** A fetched file or tree; `error` is reported although the fetch succeeded. */
interface Come {
  readonly hostId: number
  readonly hostname: string
  /** Path on the host. Its base name cannot leave a directory, whatever the server sends. */
  readonly path: string
  readonly error: string | null
}

/** Downloads fetched files to their places, and reports each. Errors: `usage` if one cannot be written. */
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
      // An unwritable place must not keep the files of other hosts away.
      if (!(fault instanceof RsmError) || fault.code !== 'usage') throw fault
      unwritable ??= fault
    }
  }
  if (unwritable !== undefined) throw unwritable
}

const placeOf = ({ target, isFile }: Destination, { hostname, path }: Come): string =>
  isFile ? target : join(target, fileNameOf(hostname), basename(normalize(`/${path}`)))

/** Entries per tree for `hostCount` hosts, so that a host cannot use up the inodes of the local machine. */
export const shareOfEntries = (hostCount: number): number =>
  Math.max(leastShare, Math.floor(mostEntries / hostCount))

/** Errors: `usage` with the reason. */
function within<T>(directory: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new RsmError('usage', `can't write into ${directory}: ${whyUnwritable(error)}`, { cause: error })
  }
}

const make = (directory: string): string[] => within(directory, () => makeDirectory(directory))
