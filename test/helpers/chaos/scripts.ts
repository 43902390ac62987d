import type { TaskResult } from '../../../src/core/tasks/task.ts'
import type { Random } from './random.ts'

type End = Pick<TaskResult, 'status' | 'exitCode' | 'signal'>

/** A script and the result that it must have, wherever and under whatever faults it runs. */
export interface ChaosScript {
  readonly name: string
  readonly content: string
  /** Its time limit, in seconds. */
  readonly timeout: number
  /** Runs until it is cancelled; its output by then is the beginning of its text. */
  readonly isCancelled: boolean
  readonly stdout: string
  readonly stderr: string
  readonly end: End
}

const odd = 'é€😀ß'
const line = (stream: string, n: number) => `${stream} line ${n} ${odd}\n`
const lines = (stream: string, count: number) =>
  Array.from({ length: count }, (_, at) => line(stream, at + 1)).join('')

const exits = (exitCode: number, signal: string | null = null): End => ({
  status: exitCode === 0 ? 'SUCCESS' : 'FAILED',
  exitCode,
  signal,
})

const awk = (stream: string, count: number) =>
  `awk 'BEGIN{for(i=1;i<=${count};i++)print "${stream} line " i " ${odd}"}'`

type Maker = (random: Random, exitCode: number) => Partial<ChaosScript> & { content: string }

/** Each script first appends itself to `$STARTS`, so that a second start shows there. */
const makers: Record<string, Maker> = {
  silent: (_, exitCode) => ({ content: `exit ${exitCode}`, end: exits(exitCode) }),
  short: (random, exitCode) => {
    const count = random.between(1, 30)
    return {
      content: `${awk('out', count)}; ${awk('err', 3)} >&2; printf 'no newline %s' '${odd}'; exit ${exitCode}`,
      stdout: `${lines('out', count)}no newline ${odd}`,
      stderr: lines('err', 3),
      end: exits(exitCode),
    }
  },
  big: (random, exitCode) => {
    const [out, err] = [random.between(5_000, 80_000), random.between(0, 10_000)]
    return {
      content: `${awk('out', out)} & ${awk('err', err)} >&2; wait; exit ${exitCode}`,
      stdout: lines('out', out),
      stderr: lines('err', err),
      end: exits(exitCode),
    }
  },
  slow: (random, exitCode) => {
    const count = random.between(15, 70)
    return {
      content: `for ((i=1;i<=${count};i++)); do echo "out line $i ${odd}"; echo "err line $i ${odd}" >&2; sleep 0.2; done; exit ${exitCode}`,
      stdout: lines('out', count),
      stderr: lines('err', count),
      end: exits(exitCode),
    }
  },
  bursts: (random, exitCode) => {
    const count = random.between(5, 20)
    return {
      content: `for ((n=0;n<${count};n++)); do ${awk('out', 4_000)}; sleep 0.5; done; exit ${exitCode}`,
      stdout: lines('out', 4_000).repeat(count),
      end: exits(exitCode),
    }
  },
  torn: (random, exitCode) => {
    const count = random.between(5, 25)
    return {
      content: `for ((i=0;i<${count};i++)); do printf '\\xe2\\x82'; sleep 0.2; printf '\\xac'; printf '\\xf0' >&2; sleep 0.2; printf '\\x9f\\x98\\x80' >&2; done; exit ${exitCode}`,
      stdout: '€'.repeat(count),
      stderr: '😀'.repeat(count),
      end: exits(exitCode),
    }
  },
  killed: () => ({
    content: `${awk('out', 50)}; kill -KILL $$`,
    stdout: lines('out', 50),
    end: exits(137, 'SIGKILL'),
  }),
  timeout: (random) => ({
    content: `${awk('out', 200)}; sleep 1000 & wait`,
    timeout: random.between(2, 8),
    stdout: lines('out', 200),
    end: { status: 'TIMEOUT', exitCode: -1, signal: null },
  }),
  cancelled: () => ({
    content: `for ((i=1;i<=100000;i++)); do echo "out line $i ${odd}"; sleep 0.3; done`,
    stdout: lines('out', 2_000),
    isCancelled: true,
  }),
}

/** Long ones more often than short ones, so that some script is always running. */
const kinds: readonly string[] = [
  ...Object.keys(makers),
  'slow',
  'slow',
  'bursts',
  'torn',
  'cancelled',
  'timeout',
]

export function chaosScript(random: Random): ChaosScript {
  const kind = random.pick(kinds)
  const exitCode = random.pick([0, 0, 0, 1, 7, 42])
  const made = makers[kind]?.(random, exitCode)
  if (!made) throw new TypeError(`no kind ${kind}`)
  return {
    name: kind,
    timeout: 300,
    isCancelled: false,
    stdout: '',
    stderr: '',
    end: exits(exitCode),
    ...made,
    content: `echo "$0" >> "$STARTS"\n${made.content}\n`,
  }
}
