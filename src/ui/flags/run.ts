import { boolean, string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import { ask } from '../prompt.ts'
import { parseBatchSize, parseDuration, parseMaxFailures, parsePairs, parseStrategy } from '../values.ts'

const run = { helpGroup: 'RUN' } as const
const output = { helpGroup: 'OUTPUT' } as const
const several = { ...run, multiple: true, multipleNonGreedy: true } as const

/** The options that say how a task runs and what of it is shown (contract §9). */
export const runFlags = {
  param: string({
    ...several,
    char: 'p',
    helpValue: 'KEY=VALUE',
    description: 'environment variable of the script',
  }),
  'secret-param': string({
    ...several,
    helpValue: 'KEY',
    description: 'the same, its value taken from the environment or asked',
  }),
  strategy: string({ ...run, helpValue: 'NAME', description: 'parallel (default), sequential or rolling' }),
  'batch-size': string({
    ...run,
    helpValue: 'SIZE',
    description: "rolling: a number, '25%', or canaries like '1,10%,50%'",
  }),
  concurrency: string({ ...run, char: 'f', helpValue: 'N', description: 'at most so many hosts at once' }),
  'max-failures': string({
    ...run,
    helpValue: 'N',
    description: 'stop once more than so many failed; a number or a percentage',
  }),
  pause: string({ ...run, helpValue: 'TIME', description: 'between batches' }),
  timeout: string({
    ...run,
    char: 'u',
    helpValue: 'TIME',
    description: 'run time on a host, like 90, 90s, 5m; 0 = none',
  }),
  deadline: string({
    ...run,
    helpValue: 'TIME',
    description: 'for the whole task: then it is cancelled, exit 124',
  }),
  queue: string({ ...run, helpValue: 'TIME', description: 'how long a host may take to be reachable' }),
  'run-as': string({ ...run, char: 'l', helpValue: 'USER', description: 'user on the host' }),
  workdir: string({ ...run, helpValue: 'DIR', description: 'directory on the host' }),
  'idempotency-key': string({
    ...run,
    helpValue: 'KEY',
    description: 'the same key starts once within 24 hours',
  }),
  detach: boolean({ ...run, description: 'start it, print its task id, do not wait' }),
  plan: boolean({
    ...run,
    aliases: ['dry-run'],
    description: 'show hosts, batches and the exact text; run nothing',
  }),
  yes: boolean({ ...run, char: 'y', description: 'do not ask' }),
  output: string({
    ...output,
    char: 'o',
    helpValue: 'FORMAT',
    options: ['live', 'grouped'],
    description: 'live (default) or grouped',
  }),
  grouped: boolean({ ...output, char: 'b', description: 'equal output once, under its hosts: -o grouped' }),
  'no-prefix': boolean({ ...output, char: 'N', description: 'no host name before the lines' }),
  raw: boolean({ ...output, description: 'let control sequences of the hosts through' }),
}

export interface RunFlags {
  readonly param?: readonly string[] | undefined
  readonly 'secret-param'?: readonly string[] | undefined
  readonly strategy?: string | undefined
  readonly 'batch-size'?: string | undefined
  readonly concurrency?: string | undefined
  readonly 'max-failures'?: string | undefined
  readonly pause?: string | undefined
  readonly timeout?: string | undefined
  readonly deadline?: string | undefined
  readonly queue?: string | undefined
  readonly 'run-as'?: string | undefined
  readonly workdir?: string | undefined
  readonly 'idempotency-key'?: string | undefined
  readonly detach: boolean
  readonly plan: boolean
  readonly yes: boolean
  readonly output?: string | undefined
  readonly grouped: boolean
  readonly 'no-prefix': boolean
  readonly raw: boolean
}

/** Values of secret parameters: never arguments, which every user of the machine can read. */
async function readSecrets(names: readonly string[]): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {}
  for (const name of names) {
    if (name.includes('='))
      throw new RsmError('usage', '--secret-param takes a name only: arguments are seen by all', {
        hint: `export ${name.slice(0, name.indexOf('='))}, or leave it out to be asked`,
      })
    secrets[name] =
      process.env[name] ??
      (await ask(`${name}: `, { hidden: true, instead: `set ${name} in the environment` }))
  }
  return secrets
}

function wholeSeconds(option: string, text: string): number {
  const seconds = parseDuration(text)
  if (!Number.isInteger(seconds)) throw new RsmError('usage', `${option} takes whole seconds, not ${text}`)
  return seconds
}

function count(option: string, text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new RsmError('usage', `${option} takes a number from 1, not ${text}`)
}

/** The execution options of contract §4 that the command line says; what it leaves out, the server decides. */
export async function readRunOptions(flags: RunFlags): Promise<ExecutionOptions> {
  const options: ExecutionOptions = {}
  if (flags.param !== undefined) options.params = parsePairs('-p', flags.param)
  if (flags['secret-param'] !== undefined) options.secretParams = await readSecrets(flags['secret-param'])
  if (flags.strategy !== undefined) options.strategy = parseStrategy(flags.strategy)
  else if (flags['batch-size'] !== undefined) options.strategy = 'ROLLING'
  if (flags['batch-size'] !== undefined) options.batchSize = parseBatchSize(flags['batch-size'])
  if (flags.concurrency !== undefined) options.concurrency = count('--concurrency', flags.concurrency)
  if (flags['max-failures'] !== undefined) options.maxFailures = parseMaxFailures(flags['max-failures'])
  if (flags.pause !== undefined) options.pauseSeconds = parseDuration(flags.pause)
  if (flags.timeout !== undefined) options.timeout = wholeSeconds('--timeout', flags.timeout)
  if (flags.queue !== undefined) options.queueSeconds = parseDuration(flags.queue)
  if (flags['run-as'] !== undefined) options.runAs = flags['run-as']
  if (flags.workdir !== undefined) options.workDir = flags.workdir
  return options
}
