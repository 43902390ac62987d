import { useEffect, useState } from 'preact/hooks'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Schedule } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { TaskCreate } from '../../core/protocol/http/tasks.ts'
import { said } from '../api.ts'
import { Fault } from '../parts/fault.tsx'
import { namedHosts } from '../run/named-hosts.ts'
import { PlanPreview } from '../run/plan-preview.tsx'
import { selectorOf } from './schedule-words.ts'

/** A schedule as the task that it would start; of secret params the names only. */
function taskOf({ scriptId, script, copy, secretParams, ...options }: Schedule): TaskCreate {
  return {
    ...options,
    ...(scriptId !== null && { scriptId }),
    ...(script !== null && { script }),
    ...(copy !== null && { copy }),
    secretParams: Object.fromEntries(secretParams.map((name) => [name, ''])),
  }
}

/** What the schedule would run if it ran now: its hosts, how it goes over them, and the scripts. */
export function PlanNow({ schedule, scripts }: { schedule: Schedule; scripts: readonly ScriptSummary[] }) {
  const [hosts, setHosts] = useState<readonly Host[] | undefined>()
  const [fault, setFault] = useState('')
  useEffect(() => {
    let isLeft = false
    selectorOf(schedule.target)
      .then(namedHosts)
      .then(
        (found) => !isLeft && setHosts(found),
        (error: unknown) => !isLeft && setFault(said(error)),
      )
    return () => {
      isLeft = true
    }
  }, [schedule.updatedAt])
  if (hosts === undefined) return fault === '' ? <p class="hint">Looking …</p> : <Fault text={fault} />
  return <PlanPreview body={taskOf(schedule)} hosts={hosts} scripts={scripts} />
}
