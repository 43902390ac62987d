import type { FieldFault } from '../../../core/errors.ts'
import type { ExecutionOptions, GateOption } from '../../../core/protocol/http/tasks.ts'
import { firstLine } from '../../../core/scripts/first-line.ts'
import { defaultInterval } from '../../../core/tasks/gates.ts'
import { defaultTimeout } from '../../../core/tasks/plan.ts'
import type { GateScript, TaskGates } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'
import { contentFaults } from '../scripts.ts'
import { adHocScript, type ScriptToRun, storedScript } from './script-to-run.ts'

/** What older servers run in the place of a script, as they would leave out what follows on it. */
export const forOlderServers = `echo "this server is too old to verify or roll back what it runs: upgrade it" >&2
exit 126`

async function scriptOf(
  context: Context,
  { scriptId, script }: GateOption,
  field: 'verify' | 'rollback',
): Promise<ScriptToRun | FieldFault> {
  if ((scriptId === undefined) === (script === undefined))
    return { field, message: 'give exactly one of scriptId and script' }
  if (script !== undefined) return adHocScript(script, `${field}.script`)
  return storedScript(context, scriptId ?? 0, `${field}.scriptId`)
}

function gateOf(script: ScriptToRun, timeout: number | undefined): GateScript {
  const { scriptId, scriptVersion, scriptName, type, content } = script
  const named = timeout ?? script.timeout
  return {
    scriptId,
    scriptVersion,
    scriptName,
    firstLine: scriptName === null ? firstLine(content) : null,
    type,
    content,
    timeout: named ?? defaultTimeout,
    ...(named === null && { hasDefaultTimeout: true }),
  }
}

/** What a request wants to follow on its script, and all that is wrong with that. */
export async function askedGates(
  context: Context,
  { verify, rollback }: ExecutionOptions,
): Promise<{ gates: TaskGates | undefined; scripts: ScriptToRun[]; faults: FieldFault[] }> {
  const [verifying, undoing] = [
    verify && (await scriptOf(context, verify, 'verify')),
    rollback && (await scriptOf(context, rollback, 'rollback')),
  ]
  const scripts: ScriptToRun[] = []
  const faults: FieldFault[] = []
  for (const found of [verifying, undoing])
    if (found && 'message' in found) faults.push(found)
    else if (found) {
      scripts.push(found)
      faults.push(...contentFaults(found.type, found.content, found.field))
    }
  if (faults.length > 0 || scripts.length === 0) return { gates: undefined, scripts, faults }
  const { retries = 0, intervalSeconds = defaultInterval } = verify ?? {}
  const ofVerify = verifying && 'content' in verifying ? gateOf(verifying, verify?.timeout) : null
  const gates = {
    script: null,
    verify: ofVerify && { ...ofVerify, retries, intervalSeconds },
    rollback: undoing && 'content' in undoing ? gateOf(undoing, undefined) : null,
  }
  return { gates, scripts, faults }
}
