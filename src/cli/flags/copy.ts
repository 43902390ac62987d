import { boolean, string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import { parseBytes } from '../input/values.ts'
import type { FlagsOf } from './checks.ts'
import { runFlags } from './run.ts'

/** Leaves out flags that only scripts have, or that mean something else for a copy. */
const {
  param: _param,
  'secret-param': _secret,
  workdir: _workdir,
  limit: _limit,
  plan: _plan,
  diff: _diff,
  ...taskFlags
} = runFlags

const helpGroup = 'COPY'

export const copyFlags = {
  recursive: boolean({ helpGroup, char: 'r', description: 'copy directories with their content' }),
  follow: boolean({
    helpGroup,
    char: 'L',
    description: 'from hosts: copy the targets of symlinks, not the symlinks',
  }),
  mode: string({
    helpGroup,
    helpValue: 'MODE',
    description: "permissions, like 0640 (default: unchanged, or the source's)",
  }),
  owner: string({
    helpGroup,
    helpValue: 'USER[:GROUP]',
    description: 'owner (default: unchanged, or the user who writes it)',
  }),
  backup: boolean({ helpGroup, description: 'keep the replaced file as NAME.rsm-TASK' }),
  'dry-run': boolean({ helpGroup, description: 'write nothing; say which hosts would change' }),
  diff: boolean({ helpGroup, description: 'write nothing; show how the text would change' }),
  secret: boolean({
    helpGroup,
    description: 'encrypt the file on the server; delete it after the task',
  }),
  'max-size': string({
    helpGroup,
    helpValue: 'BYTES',
    description: 'from hosts: largest size per host, e.g. 500K or 10M',
  }),
  'limit-rate': string({
    helpGroup,
    helpValue: 'BYTES',
    description: 'bytes per second to all hosts together, like 500K or 10M',
  }),
  ...taskFlags,
  timeout: {
    ...runFlags.timeout,
    description: 'time for a host, like 90s or 5m; 0 = none (default: 1h)',
  },
  plan: boolean({ helpGroup: 'RUN', description: 'show the hosts and the batches; contact no host' }),
}

export type CopyFlags = FlagsOf<typeof copyFlags>

export type CopyHow = Pick<
  CopyFlags,
  'recursive' | 'follow' | 'mode' | 'owner' | 'backup' | 'dry-run' | 'diff' | 'secret'
>

/** Values of the script flags that `copyFlags` leaves out. */
export const withoutScripts = {
  param: undefined,
  'secret-param': undefined,
  workdir: undefined,
  limit: undefined,
  diff: false,
} as const

/** Bytes per second. Errors: `usage`. */
export function parseRate(text: string): number {
  const rate = parseBytes('--limit-rate', text)
  if (rate >= 16 * 1024 && rate <= 1024 ** 4) return rate
  throw new RsmError(
    'usage',
    `--limit-rate takes bytes per second from 16K to 1024G, not ${text || 'nothing'}`,
    {
      hint: 'for example: --limit-rate 500K, --limit-rate 10M',
    },
  )
}

export function parseMode(text: string): string {
  if (/^[0-7]{3,4}$/.test(text)) return text
  throw new RsmError('usage', `--mode takes an octal number of 3 or 4 digits, not ${text || 'nothing'}`, {
    hint: 'for example: --mode 0640',
  })
}

/** Names or ids of users and groups that the server accepts. */
const account = /^(?:[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?|[0-9]{1,10})$/

export function parseOwner(text: string): { owner?: string; group?: string } {
  const [owner = '', group, ...rest] = text.split(':')
  const isGroupOnly = owner === '' && group !== undefined
  const isRight =
    rest.length === 0 && (isGroupOnly || account.test(owner)) && (group === undefined || account.test(group))
  if (!isRight)
    throw new RsmError('usage', `--owner takes USER, USER:GROUP or :GROUP, not ${text || 'nothing'}`)
  return { ...(owner !== '' && { owner }), ...(group !== undefined && { group }) }
}
