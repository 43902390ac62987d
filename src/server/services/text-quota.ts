import { RsmError } from '../../core/errors.ts'
import type { Context } from './context.ts'

/** MiB of JSON as stored: per author, and in total. */
interface Quota {
  readonly ofOne: number
  readonly ofAll: number
}
/** Scripts and schedules together (contract §1). */
const stored: Quota = { ofOne: 64, ofAll: 256 }
/** Running tasks. */
const running: Quota = { ofOne: 128, ofAll: 512 }
const mebibyte = 1024 * 1024
/** Smaller tasks are not measured, so that a common command costs no query. */
const smallTask = 16 * 1024

const bytesOf = (record: object | null) => (record ? Buffer.byteLength(JSON.stringify(record)) : 0)

interface Written {
  readonly author: string
  readonly record: object
}

/** `previous`: the replaced record. Errors: `conflict` if the author has no room left. */
export async function demandStoredRoom(
  { store }: Pick<Context, 'store'>,
  { author, record }: Written,
  previous: Written | null = null,
): Promise<void> {
  const more = bytesOf(record) - (previous?.author === author ? bytesOf(previous.record) : 0)
  if (more <= 0) return
  const sums = await Promise.all([store.textBytes('scripts'), store.textBytes('schedules')])
  const advice = 'remove some: rsm scripts list, rsm schedules list'
  demand(sums, stored, { author, more, noun: 'scripts and schedules', advice })
}

/** Errors: `conflict` if the author's running tasks leave no room for another one. */
export async function demandRunningRoom(
  { store }: Pick<Context, 'store'>,
  author: string,
  { content, gates, options }: { content: string; gates?: object | undefined; options: object },
): Promise<void> {
  const more = bytesOf({ content, gates, options })
  if (more <= smallTask) return
  const advice = 'wait for some to end, or cancel them: rsm tasks list --status RUNNING'
  demand([await store.textBytes('tasks')], running, { author, more, noun: 'running tasks', advice })
}

function demand(
  sums: readonly ReadonlyMap<string, number>[],
  { ofOne, ofAll }: Quota,
  { author, more, noun, advice }: { author: string; more: number; noun: string; advice: string },
): void {
  let own = more
  let all = more
  for (const sum of sums)
    for (const [name, bytes] of sum) {
      all += bytes
      if (name === author) own += bytes
    }
  const whose = own > ofOne * mebibyte ? ` of ${author}` : ''
  const most = whose === '' ? ofAll : ofOne
  if (whose === '' && all <= ofAll * mebibyte) return
  throw new RsmError('conflict', `Limit reached: ${noun}${whose} may have ${most} MiB of text; ${advice}`)
}
