import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { confirm, isSomeoneThere } from '../input/prompt.ts'
import { latestTask } from '../names/id-parts.ts'
import { counted } from '../text/amounts.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { withOwnMark } from '../text/screen.ts'
import { showTime } from '../text/time.ts'

interface Choice {
  readonly verb: 'cancel' | 'retry'
  readonly yes: boolean
  readonly utc: boolean
  readonly say: (text: string) => void
}

/** `script deploy`, `'df -h'`. */
export function scriptText({ scriptName, firstLine }: TaskSummary): string {
  if (scriptName !== null) return `script ${sanitizeLine(scriptName)}`
  return firstLine === null ? 'a command' : `'${withOwnMark(sanitizeLine(firstLine))}'`
}

/** The caller's newest task, to end or repeat it. Errors: `usage` if not interactive and without `--yes`. */
export async function latestChosen(client: Client, { verb, yes, utc, say }: Choice): Promise<TaskSummary> {
  if (!yes && !isSomeoneThere())
    throw new RsmError('usage', `without a terminal, ${verb} of latest needs --yes`, {
      hint: `name the task: rsm tasks ${verb} TASK, or use --yes`,
    })
  const task = await latestTask(client)
  const hosts = counted(task.hostCount, 'host')
  say(`latest is ${task.taskId}: ${scriptText(task)} on ${hosts}, started ${showTime(task.createdAt, utc)}`)
  return task
}

/** Asks for confirmation; rejects with `interrupted` if refused. */
export async function confirmCancel(task: TaskSummary, server: string): Promise<void> {
  const question = `Cancel ${scriptText(task)} on ${counted(task.hostCount, 'host')} of ${server}?`
  if (!(await confirm(question, 'use --yes'))) throw new RsmError('interrupted', 'nothing was cancelled')
}
