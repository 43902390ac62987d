import { boolean, string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import type { Strategy } from '../../core/tasks/task.ts'
import { ask } from '../input/prompt.ts'
import {
  parseBatchSize,
  parseDuration,
  parseLimits,
  parseMaxFailures,
  parsePairs,
  parseStrategy,
  parseWholeSeconds,
} from '../input/values.ts'
import { type FlagsOf, given, ifGiven, repeated } from './checks.ts'
import { outputFlags } from './output.ts'

const run = { helpGroup: 'RUN' } as const
const several = { ...run, ...repeated } as const

/** Options for starting a new task or a retry. */
export const startFlags = {
  'secret-param': string({
    ...several,
    helpValue: 'KEY',
    description: 'secret variable; value from the environment, or asked for',
  }),
  deadline: string({
    ...run,
    helpValue: 'TIME',
    description: 'time limit for the whole task; then cancel it and exit 124',
  }),
  'idempotency-key': string({
    ...run,
    helpValue: 'KEY',
    description: 'start only one task for this key within 24 hours',
  }),
  detach: boolean({ ...run, description: 'start it, print its task id, do not wait' }),
  yes: boolean({
    ...run,
    char: 'y',
    description: 'do not ask for confirmation, however many hosts there are',
  }),
}

/** Execution options (contract §4). */
export const executionFlags = {
  'secret-param': startFlags['secret-param'],
  param: string({
    ...several,
    char: 'p',
    helpValue: 'KEY=VALUE',
    description: 'environment variable of the script',
  }),
  strategy: string({ ...run, helpValue: 'NAME', description: 'parallel (default), sequential or rolling' }),
  'batch-size': string({
    ...run,
    helpValue: 'SIZE',
    description: "rolling: hosts per batch, like 5, '25%' or '1,10%,50%'",
  }),
  concurrency: string({ ...run, char: 'f', helpValue: 'N', description: 'run on at most N hosts at once' }),
  'max-failures': string({
    ...run,
    helpValue: 'N',
    description: 'start no more hosts once more than N (or N%) have failed',
  }),
  pause: string({ ...run, helpValue: 'TIME', description: 'time between two batches' }),
  timeout: string({
    ...run,
    char: 'u',
    helpValue: 'TIME',
    description: "run time, like 5m; 0 = none (default: the script's, or 300)",
  }),
  queue: string({
    ...run,
    helpValue: 'TIME',
    description: 'wait for unreachable hosts (default: 2m; if stopped, 15s)',
  }),
  'run-as': string({ ...run, char: 'l', helpValue: 'USER', description: 'user to run as on the host' }),
  workdir: string({ ...run, helpValue: 'DIR', description: 'directory on the host' }),
  limit: string({
    ...several,
    helpValue: 'NAME=SIZE',
    description: 'per host: memory=512M, processes=100, cpu=50% of a core',
  }),
}

export const runFlags = {
  ...startFlags,
  ...executionFlags,
  plan: boolean({
    ...run,
    aliases: ['dry-run'],
    description: 'show hosts, batches and the exact script; run nothing',
  }),
  ...outputFlags,
}

/** The script's stdin, in place of /dev/null (contract §13). */
export const stdinFlag = string({
  ...run,
  helpValue: 'FILE|-',
  description: "file for the script's stdin on each host; - = rsm's own",
})

export type RunFlags = FlagsOf<typeof runFlags>

type ExecutionFlags = FlagsOf<typeof executionFlags> & { readonly plan?: boolean }

function count(option: string, text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new RsmError('usage', `${option} takes a number from 1, not ${text}`)
}

export const readConcurrency = (text: string): number => count('--concurrency', text)

/** Enforces the server's rule early, because a key invalid in a header would fail deep inside the request. */
export function checkKey(key: string | undefined): void {
  if (key === undefined || /^[!-~]{1,255}$/.test(key)) return
  throw new RsmError('usage', '--idempotency-key takes 1 to 255 visible ASCII characters')
}

/** Refuses options without effect, because the user relies on them. */
function refuseWithoutBatches(flags: ExecutionFlags, strategy: Strategy): void {
  if (flags['batch-size'] !== undefined && strategy !== 'ROLLING')
    throw new RsmError('usage', `--batch-size is for --strategy rolling, not ${strategy.toLowerCase()}`)
  if (flags.pause !== undefined && strategy === 'PARALLEL')
    throw new RsmError('usage', '--pause needs several batches, and there is only one', {
      hint: 'add --batch-size 25%, or --strategy sequential',
    })
}

/** Does not ask for values for a plan, because it shows only names. */
async function secretsOf({ plan, 'secret-param': names = [] }: ExecutionFlags) {
  if (names.length === 0) return undefined
  return plan ? Object.fromEntries(names.map((name) => [name, '(not asked for a plan)'])) : readSecrets(names)
}

export async function readRunOptions(flags: RunFlags): Promise<ExecutionOptions> {
  checkKey(flags['idempotency-key'])
  return readExecutionOptions(flags)
}

/** Reads the execution options; the server decides those that are not given. */
export async function readExecutionOptions(flags: ExecutionFlags): Promise<Omit<ExecutionOptions, 'async'>> {
  const implied = flags['batch-size'] === undefined ? undefined : 'ROLLING'
  const strategy = ifGiven(flags.strategy, parseStrategy) ?? implied
  const batchSize = ifGiven(flags['batch-size'], parseBatchSize)
  refuseWithoutBatches(flags, strategy ?? 'PARALLEL')
  return given({
    strategy,
    batchSize,
    params: ifGiven(flags.param, (pairs) => parsePairs('-p', pairs)),
    concurrency: ifGiven(flags.concurrency, readConcurrency),
    maxFailures: ifGiven(flags['max-failures'], parseMaxFailures),
    pauseSeconds: ifGiven(flags.pause, parseDuration),
    timeout: ifGiven(flags.timeout, (text) => parseWholeSeconds('--timeout', text)),
    queueSeconds: ifGiven(flags.queue, parseDuration),
    runAs: flags['run-as'],
    workDir: flags.workdir,
    limits: ifGiven(flags.limit, parseLimits),
    // Last, so that all other flags are valid before the user is prompted.
    secretParams: await secretsOf(flags),
  })
}

/** Values of secret params, never from arguments, because every user of the machine can read those. */
export async function readSecrets(names: readonly string[]): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {}
  for (const name of names) {
    if (name.includes('='))
      throw new RsmError('usage', '--secret-param takes only a name, because every user can see arguments', {
        hint: `export ${name.slice(0, name.indexOf('='))}, or be asked for it`,
      })
    secrets[name] =
      process.env[name] ??
      (await ask(`${name}: `, { hidden: true, instead: `set ${name} in the environment` }))
  }
  return secrets
}

/**
 * Asks for secret params that a previous task had but no flag names. Never reads the environment, because the user who started
 * that task chose the names and could have picked any variable.
 */
export async function askSecrets(taskId: string, names: readonly string[]): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {}
  const options = names.map((name) => `--secret-param ${name}`).join(' ')
  for (const name of names)
    secrets[name] = await ask(`${name} (a secret param of task ${taskId}): `, {
      hidden: true,
      instead: `task ${taskId} had secret params: add ${options}, with ${names.join(' and ')} in the environment`,
    })
  return secrets
}

/** Scripts that run on each host after the main one (contract §15). */
export const gateFlags = {
  verify: string({
    ...run,
    helpValue: 'FILE|NAME',
    description: 'script that must also succeed for a host to be successful',
  }),
  'verify-retries': string({
    ...run,
    helpValue: 'N',
    description: 'retry a failed verification up to N times',
  }),
  'verify-interval': string({
    ...run,
    helpValue: 'TIME',
    description: 'wait between two attempts (default: 5s)',
  }),
  rollback: string({
    ...run,
    helpValue: 'FILE|NAME',
    description: 'script for hosts that failed, timed out or were not verified',
  }),
}

export type GateFlags = FlagsOf<typeof gateFlags>

function retries(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) <= 1000) return Number(text)
  throw new RsmError('usage', `--verify-retries takes a number from 0 to 1000, not ${text}`)
}

/** Retries and interval of the verification. Errors: `usage`, also if they have no effect without --verify. */
export function readVerifyTimes(flags: GateFlags): { retries?: number; intervalSeconds?: number } {
  const useless = (['verify-retries', 'verify-interval'] as const).find((name) => flags[name] !== undefined)
  if (flags.verify === undefined && useless !== undefined)
    throw new RsmError('usage', `--${useless} is for --verify FILE|NAME`)
  return given({
    retries: ifGiven(flags['verify-retries'], retries),
    intervalSeconds: ifGiven(flags['verify-interval'], parseDuration),
  })
}
