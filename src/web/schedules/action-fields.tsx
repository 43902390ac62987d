import { useState } from 'preact/hooks'
import type { Schedule } from '../../core/protocol/http/schedules.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { GateOption } from '../../core/protocol/http/tasks.ts'
import { defaultTimeout } from '../../core/task/plan.ts'
import { actionOf } from '../../ui/schedules/view.ts'
import { Choice } from '../parts/choice.tsx'
import { declaredBy } from '../run/declared-by.ts'
import { type ChosenGate, GateFields, noGate } from '../run/gate-fields.tsx'
import { RunOptions } from '../run/run-options.tsx'
import { ScriptFields } from '../run/script-fields.tsx'
import { ParamField } from '../run/stored-script.tsx'

function gateOf(gate: GateOption | undefined): ChosenGate {
  if (gate === undefined) return noGate
  return { source: gate.scriptId === undefined ? 'command' : 'stored', scriptId: gate.scriptId }
}

type Source = 'command' | 'stored' | 'copy'

const sources = [
  ['command', 'A command'],
  ['stored', 'A stored script'],
] as const
/** Of a schedule that copies a file, which this form can't choose. */
const withCopy = [['copy', 'The copy of a file'], ...sources] as const

function sourceOf({ copy, scriptId }: Schedule): Source {
  if (copy !== null) return 'copy'
  return scriptId === null ? 'command' : 'stored'
}

const keptSaid = 'stays as it is where this is empty'

/** Secret params that the schedule has stay as they are where nothing is typed. */
function askedOf(params: Script['params'], kept: readonly string[]): Script['params'] {
  return params.map((param) =>
    param.secret && kept.includes(param.name)
      ? { ...param, required: false, description: [param.description, keptSaid].filter(Boolean).join(' · ') }
      : param,
  )
}

/** What of the script and its gates is no text, for a new schedule or one that is changed. */
export function useAction(scripts: readonly Script[], schedule: Schedule | undefined) {
  const [source, setSource] = useState<Source>(schedule ? sourceOf(schedule) : 'command')
  const [scriptId, setScriptId] = useState(schedule?.scriptId ?? undefined)
  const [verify, setVerify] = useState(gateOf(schedule?.verify))
  const [rollback, setRollback] = useState(gateOf(schedule?.rollback))
  const stored = (id: number | undefined) => scripts.find((one) => one.id === id)
  const script = source === 'stored' ? stored(scriptId) : undefined
  const gates = [stored(verify.scriptId), stored(rollback.scriptId)]
  /** The params that its stored scripts declare. */
  const declared = askedOf(declaredBy([script, ...gates]), schedule?.secretParams ?? [])
  return { source, setSource, script, setScriptId, verify, setVerify, rollback, setRollback, declared }
}

interface ActionFieldsProps {
  action: ReturnType<typeof useAction>
  scripts: readonly Script[]
  schedule: Schedule | undefined
}

/** What it runs, and how. */
export function ActionFields({ action, scripts, schedule }: ActionFieldsProps) {
  const { source, setSource, script, setScriptId, declared } = action
  return (
    <>
      <div class="field">
        <span class="label">What</span>
        <Choice
          label="What to run"
          options={schedule?.copy ? withCopy : sources}
          chosen={source}
          onChoose={setSource}
        />
      </div>
      {source === 'copy' && schedule ? (
        <p class="hint">{actionOf(schedule)}</p>
      ) : (
        <ScriptFields
          isStored={source === 'stored'}
          scripts={scripts}
          script={script}
          onChoose={setScriptId}
        />
      )}
      {declared.map((param) => (
        <ParamField key={`${script?.id} ${param.name}`} param={param} />
      ))}
      <details open={schedule?.verify !== undefined || schedule?.rollback !== undefined}>
        <summary>Verify and roll back</summary>
        <div class="gates">
          <GateFields gate="verify" scripts={scripts} chosen={action.verify} onChange={action.setVerify} />
          <GateFields
            gate="rollback"
            scripts={scripts}
            chosen={action.rollback}
            onChange={action.setRollback}
          />
        </div>
      </details>
      <RunOptions
        hasParams={source !== 'copy' && (script?.params ?? []).length === 0}
        timeout={script?.timeout ?? defaultTimeout}
      />
    </>
  )
}
