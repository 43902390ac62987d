import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Fetch } from '../../core/protocol/http/files.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { expandPath } from '../../core/tasks/remote-path.ts'
import { removeEmpty } from '../../disk/named-files.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { CopyFlags } from '../flags/copy.ts'
import { ifGiven } from '../flags/given.ts'
import { parseBytes } from '../input/values.ts'
import type { Transfer } from '../task/runnable.ts'
import { bring, type Destination, destinationOf } from './bring.ts'
import { checkPath, type FromHosts, refuseOptions } from './copy-order.ts'

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
