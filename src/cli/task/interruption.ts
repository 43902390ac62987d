import { RsmError } from '../../core/errors.ts'
import { ask as askOnTerminal } from '../input/prompt.ts'

/** Decision about a followed task: `leave` keeps it running. `exit` is the exit code. */
export interface Verdict {
  readonly kind: 'cancel' | 'leave'
  readonly exit: number
}

/** Effect of SIGINT and SIGTERM on a followed task; `ask` asks on Ctrl-C if interactive. */
export type Signals = 'ask' | 'cancel' | 'leave'

interface InterruptionOptions {
  readonly signals: Signals
  readonly taskId: () => string | undefined
  readonly decided: (verdict: Verdict) => void
  readonly asking: (isAsking: boolean) => void
  readonly ask?: typeof askOnTerminal
}

/** Valid answers; any other repeats the question, so that a paste or slip does not end a task. */
const answers = new Map<string, Verdict['kind'] | 'watch'>([
  ['c', 'cancel'],
  ['cancel', 'cancel'],
  ['l', 'leave'],
  ['leave', 'leave'],
  ['', 'watch'],
])

/**
 * Handles SIGINT and SIGTERM (contract §9). With `ask`, the first Ctrl-C asks whether to cancel the task, and
 * a second one cancels. SIGHUP cancels nothing.
 */
export function onInterruption(options: InterruptionOptions): {
  settled(): void
  stop(): void
} {
  const { ask = askOnTerminal } = options
  const asking = new AbortController()
  let asked = false
  const kind = options.signals === 'leave' ? 'leave' : 'cancel'
  const end = (exit: number) => {
    asking.abort()
    options.decided({ kind, exit })
  }
  const question = async () => {
    const taskId = options.taskId()
    options.asking(true)
    process.stderr.write(`\nrsm: task ${taskId ?? 'not yet started'}\n`)
    let answer = ''
    do {
      answer = await ask('[c]ancel, [l]eave it running, or Enter to keep watching: ', {
        instead: 'interrupt again to cancel',
        signal: asking.signal,
      }).catch((error: unknown) => {
        if (!(error instanceof RsmError)) throw error
        // Without a terminal, a signal cancels; end of input changes nothing.
        return error.code === 'usage' ? 'cancel' : ''
      })
      answer = answer.trim().toLowerCase()
    } while (!asking.signal.aborted && !answers.has(answer))
    // Move the cursor off the abandoned question.
    if (asking.signal.aborted) process.stderr.write('\n')
    options.asking(false)
    if (asking.signal.aborted) return
    const verdict = answers.get(answer)
    if (verdict === 'cancel') end(130)
    else if (verdict === 'leave') options.decided({ kind: 'leave', exit: 130 })
    else asked = false
  }
  const onInt = () => {
    if (options.signals !== 'ask' || asked) return end(130)
    asked = true
    void question()
  }
  const onTerm = () => end(143)
  // A second signal ends a process that only watches.
  const listen = kind === 'leave' ? 'once' : 'on'
  process[listen]('SIGINT', onInt)
  process[listen]('SIGTERM', onTerm)
  return {
    settled: () => asking.abort(),
    stop() {
      asking.abort()
      process.off('SIGINT', onInt)
      process.off('SIGTERM', onTerm)
    },
  }
}
