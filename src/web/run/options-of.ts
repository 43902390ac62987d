import { parseBytes } from '../../cli/input/values.ts'
import { invalid } from '../../core/errors.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import { limitNames } from '../../core/tasks/limits.ts'
import type { BatchSize, Strategy } from '../../core/tasks/task.ts'

type Field = (name: string) => string

/** Options with a form field of the same name as in the API. */
type Options = Pick<
  ExecutionOptions,
  | 'strategy'
  | 'batchSize'
  | 'concurrency'
  | 'maxFailures'
  | 'pauseSeconds'
  | 'timeout'
  | 'queueSeconds'
  | 'runAs'
  | 'workDir'
  | 'limits'
  | 'limitRate'
>

export const numberOf = (text: string): number | undefined => (text === '' ? undefined : Number(text))

export const given = <T extends object>(values: T) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }

/** A number, or text that the server parses as a percentage or refuses. */
const countOf = (text: string) => (/^\d+$/.test(text) ? Number(text) : text)

/** Parses `2`, `25%`, or `1, 10%, 50%`. */
function batchSizeOf(text: string): BatchSize | undefined {
  if (text === '') return undefined
  const steps = text.split(',').map((step) => countOf(step.trim()))
  return steps.length === 1 ? steps[0] : steps
}

function limitsOf(field: Field): Options['limits'] {
  const limits = given(
    Object.fromEntries(limitNames.map((name) => [name, numberOf(field(`limits.${name}`))])),
  )
  return Object.keys(limits).length === 0 ? undefined : limits
}

/** Bytes of `500K`, `10M`. Errors: `invalid` if it is not a size. */
function rateOf(text: string): number | undefined {
  if (text === '') return undefined
  try {
    return parseBytes('the rate', text)
  } catch {
    throw invalid([{ field: 'limitRate', message: 'Enter bytes per second, like 500K or 10M' }])
  }
}

/** Options from the fields of the form. Errors: `invalid` for the rate; the server validates the rest. */
export function optionsOf(field: Field): Options {
  const text = (name: string) => field(name).trim()
  const textOrNone = (name: string) => (text(name) === '' ? undefined : text(name))
  return given({
    strategy: field('strategy') as Strategy,
    batchSize: batchSizeOf(text('batchSize')),
    concurrency: numberOf(field('concurrency')),
    maxFailures: text('maxFailures') === '' ? undefined : countOf(text('maxFailures')),
    pauseSeconds: numberOf(field('pauseSeconds')),
    timeout: numberOf(field('timeout')),
    queueSeconds: numberOf(field('queueSeconds')),
    runAs: textOrNone('runAs'),
    workDir: textOrNone('workDir'),
    limits: limitsOf(field),
    limitRate: rateOf(text('limitRate')),
  })
}

/** `10M`, `500K`, or plain bytes if they are not a multiple. */
function rateText(bytes: number): string {
  const units = [
    ['G', 1024 ** 3],
    ['M', 1024 ** 2],
    ['K', 1024],
  ] as const
  const [unit, size] = units.find(([, each]) => bytes % each === 0) ?? ['', 1]
  return `${bytes / size}${unit}`
}

const textOf = (value: string | number | undefined) => (value === undefined ? '' : `${value}`)

export function optionFields(options: Options): Record<string, string> {
  const { batchSize, limits = {}, limitRate } = options
  return {
    strategy: options.strategy ?? 'PARALLEL',
    batchSize: Array.isArray(batchSize) ? batchSize.join(', ') : textOf(batchSize),
    concurrency: textOf(options.concurrency),
    maxFailures: textOf(options.maxFailures),
    pauseSeconds: textOf(options.pauseSeconds),
    timeout: textOf(options.timeout),
    queueSeconds: textOf(options.queueSeconds),
    runAs: textOf(options.runAs),
    workDir: textOf(options.workDir),
    ...Object.fromEntries(limitNames.map((name) => [`limits.${name}`, textOf(limits[name])])),
    limitRate: limitRate === undefined ? '' : rateText(limitRate),
  }
}
