import { RsmError } from '../../core/errors.ts'
import { ask as askOnTerminal } from '../input/prompt.ts'

/** What a signal asks of a followed task (contract §9). */
export type Verdict =
  | { readonly kind: 'cancel'; readonly exit: 130 | 143 }
  /** Leave the task running and stop following it. */
  | { readonly kind: 'leave' }

interface InterruptionOptions {
  /** Whether somebody can be asked. */
  readonly terminal: boolean
  /** Known once the task stands. */
  readonly taskId: () => string | undefined
  readonly decided: (verdict: Verdict) => void
  /** Whether a question stands on the terminal. */
  readonly asking: (isAsking: boolean) => void
  readonly ask?: typeof askOnTerminal
}

/**
 * Listens for SIGINT and SIGTERM. On a terminal the first Ctrl-C names the task and asks whether to cancel or to leave it,
 * a second one cancels; without a terminal both cancel at once. SIGHUP is left alone: it cancels nothing.
 */
export function onInterruption(options: InterruptionOptions): {
  /** Nothing is to be decided any more. */
  settled(): void
  stop(): void
} {
  const { ask = askOnTerminal } = options
  const asking = new AbortController()
  let asked = false
  const cancel = (exit: 130 | 143) => {
    asking.abort()
    options.decided({ kind: 'cancel', exit })
  }
  const question = async () => {
    const taskId = options.taskId()
    options.asking(true)
    process.stderr.write(`\nrsm: task ${taskId ?? 'not yet started'}\n`)
    const answer = await ask('cancel it, leave it running, or watch on (Enter)? [c/l] ', {
      instead: 'interrupt again to cancel',
      signal: asking.signal,
    }).catch((error: unknown) => {
      if (error instanceof RsmError) return undefined
      throw error
    })
    // The cursor stands behind a question that nobody will answer.
    if (asking.signal.aborted) process.stderr.write('\n')
    options.asking(false)
    if (asking.signal.aborted) return
    if (answer === undefined || /^c/i.test(answer.trim())) cancel(130)
    else if (/^l/i.test(answer.trim())) options.decided({ kind: 'leave' })
    else asked = false
  }
  const onInt = () => {
    if (!options.terminal || asked) {
      cancel(130)
      return
    }
    asked = true
    void question()
  }
  const onTerm = () => cancel(143)
  process.on('SIGINT', onInt)
  process.on('SIGTERM', onTerm)
  return {
    settled: () => asking.abort(),
    stop() {
      asking.abort()
      process.off('SIGINT', onInt)
      process.off('SIGTERM', onTerm)
    },
  }
}
