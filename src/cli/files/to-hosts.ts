import { statSync } from 'node:fs'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Copy } from '../../core/protocol/http/files.ts'
import { whyUnreadable } from '../../disk/named-files.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { CopyHow } from '../flags/copy.ts'
import type { StdinReader } from '../input/stdin.ts'
import type { Transfer } from '../task/runnable.ts'
import { pathOnHosts, readCopyOptions, refuseLongDiff, refuseOptions, type ToHosts } from './copy-order.ts'
import { fileSource, type LocalSource, sendSource, stdinSource } from './send.ts'

/** Errors: `usage` for a missing source, or a directory without -r. */
function areTree(sources: readonly string[], isRecursive: boolean): boolean {
  const directory = sources.find((source) => {
    if (source === '-') return false
    try {
      return statSync(source).isDirectory()
    } catch (error) {
      throw new RsmError('usage', `cannot read ${source}: ${whyUnreadable(error)}`, { cause: error })
    }
  })
  if (directory !== undefined && !isRecursive)
    throw new RsmError('usage', `${directory} is a directory`, {
      hint: 'to copy a directory with its content: -r',
    })
  return directory !== undefined || sources.length > 1
}

async function sourceOf(
  sources: readonly string[],
  kind: Copy['kind'],
  hasTop: boolean,
  stdin: StdinReader,
): Promise<LocalSource> {
  if (kind === 'TREE') return (await import('./tree-source.ts')).treeSource(sources, hasTop)
  const [source = ''] = sources
  return source === '-' ? stdinSource(stdin, 'what is copied') : fileSource(source)
}

/** `cp` to hosts: checks local files, uploads nothing yet. Errors: `usage`, `invalid`. */
export async function toHosts(
  command: BaseCommand,
  client: () => Promise<Client>,
  { sources, to }: ToHosts,
  flags: CopyHow,
  stdin: StdinReader,
): Promise<Transfer> {
  refuseOptions(flags, ['follow', 'max-size'], 'from')
  const how = readCopyOptions(flags)
  if (sources.length > 1 && sources.includes('-'))
    throw new RsmError('usage', 'stdin cannot be copied together with files')
  const kind = areTree(sources, flags.recursive) ? 'TREE' : 'FILE'
  if (kind === 'TREE' && flags.diff)
    throw new RsmError('usage', '--diff takes one file only', { hint: 'use --dry-run' })
  const [source = ''] = sources
  const path = pathOnHosts(to.path, sources.length > 1 ? './' : source, kind)
  // The content of a directory goes into an existing one, whose owner must not change.
  const hasTop = !path.endsWith('/') || (how.owner === undefined && how.group === undefined)
  const local = await sourceOf(sources, kind, hasTop, stdin)
  return {
    type: 'COPY',
    text: `copy ${local.name} to ${path}`,
    params: [],
    prepare: async () => {
      if (flags.diff) refuseLongDiff(source, local.size)
      const fileId = await sendSource(command, await client(), local, flags.secret)
      const sourceMode = local.mode === undefined ? {} : { sourceMode: local.mode }
      return { copy: { fileId, path, kind, ...sourceMode, ...how } }
    },
    close: local.close,
  }
}
