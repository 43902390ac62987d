import { statSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Fetch } from '../../core/protocol/http/files.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { expandPath } from '../../core/task/remote-path.ts'
import type { TaskResult } from '../../core/task/task.ts'
import { makeDirectory } from '../../disk/make-directory.ts'
import { whyUnwritable } from '../../disk/unwritable.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { CopyFlags } from '../flags/copy.ts'
import { fileNameOf } from '../output/outdir.ts'
import type { Transfer } from '../task/runnable.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import type { FromHosts } from './arguments.ts'
import { checkPath, refuseOptions } from './copy-order.ts'

/** Where what comes from hosts goes to: a directory with one for each of them, or one file of one host. */
interface Destination {
  readonly target: string
  readonly isFile: boolean
}

/** Errors: `usage`, where it can't be done. */
function within<T>(directory: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new RsmError('usage', `can't write into ${directory}: ${whyUnwritable(error)}`, { cause: error })
  }
}

const make = (directory: string): void => within(directory, () => makeDirectory(directory))

/** One file of one host takes the name that is not one of a directory, as with scp. Errors: `usage`. */
function destinationOf(target: string, kind: Fetch['kind'], hostCount: number): Destination {
  const found = within(dirname(target), () => statSync(target, { throwIfNoEntry: false }))
  const isDirectory = found?.isDirectory() === true
  if (found !== undefined && !isDirectory && (hostCount > 1 || kind === 'TREE' || !found.isFile()))
    throw new RsmError('usage', `${target} is no directory`, {
      hint: 'name a directory: it gets one for each host',
    })
  const isFile = kind === 'FILE' && hostCount === 1 && !isDirectory && !target.endsWith('/')
  make(isFile ? dirname(target) : target)
  return { target, isFile }
}

function placeOf({ target, isFile }: Destination, { path }: Fetch, { hostname }: TaskResult): string {
  if (isFile) return target
  const name = basename(normalize(expandPath(path, hostname) ?? path))
  return join(target, fileNameOf(hostname), name)
}

/** What `cp` does with a path on hosts. Errors: `usage`, `invalid`. */
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
    throw new RsmError('usage', `${path} is a directory`, { hint: 'copy it with all that is in it: -r' })
  checkPath('fetch.path', path, kind)
  const fetch: Fetch = { path, kind, ...(flags.follow && { follow: true }) }
  let destination: Destination = { target, isFile: false }
  return {
    type: 'FETCH',
    text: `copy ${path} to ${target}`,
    params: [],
    prepare: async (hostCount) => {
      destination = destinationOf(target, kind, hostCount)
      return { body: { fetch } }
    },
    received: async ({ taskId, results }: Task) => {
      const { receive } = await import('./receive.ts')
      if (destination.isFile && results.length > 1)
        throw new RsmError('usage', `${results.length} hosts have one file each, and ${target} is one only`, {
          hint: `${target}/ is a directory`,
        })
      const { files } = await client()
      let unwritable: RsmError | undefined
      for (const result of results) {
        if (result.status !== 'SUCCESS') continue
        const place = placeOf(destination, fetch, result)
        const { hostId, hostname, error } = result
        try {
          make(dirname(place))
          const bytes = await receive(command, files, { taskId, hostId, hostname, kind }, place)
          const told = error === null ? '' : `: ${sanitizeLine(error)}`
          command.done(`${sanitizeLine(`${hostname}: ${place}`)} (${bytes})${told}`)
        } catch (fault) {
          // One place that can't be written keeps nobody else's file away.
          if (!(fault instanceof RsmError) || fault.code !== 'usage') throw fault
          unwritable ??= fault
        }
      }
      if (unwritable !== undefined) throw unwritable
    },
  }
}
