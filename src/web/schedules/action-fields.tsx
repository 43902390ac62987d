import { useState } from 'preact/hooks'
import type { Schedule } from '../../core/protocol/http/schedules.ts'
import type { Script, ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { GateOption } from '../../core/protocol/http/tasks.ts'
import { copyTimeout, defaultTimeout } from '../../core/task/plan.ts'
import { Choice } from '../parts/choice.tsx'
import { CopyFields } from '../run/copy-fields.tsx'
import { declaredBy } from '../run/declared-by.ts'
import { type ChosenGate, GateFields, noGate } from '../run/gate-fields.tsx'
import { RunOptions } from '../run/run-options.tsx'
import { ScriptFields } from '../run/script-fields.tsx'
import { ParamField } from '../run/stored-script.tsx'
import { secretsNamed } from '../run/task-of.ts'
import { useTexts } from '../run/use-scripts.ts'

function gateOf(gate: GateOption | undefined): ChosenGate {
  if (gate === undefined) return noGate
  return { source: gate.scriptId === undefined ? 'command' : 'stored', scriptId: gate.scriptId }
}

type Source = 'command' | 'stored' | 'copy'

const sources = [
  ['command', 'A command'],
  ['stored', 'A stored script'],
  ['copy', 'Copy a file'],
] as const

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
export function useAction(listed: readonly ScriptSummary[], schedule: Schedule | undefined) {
  const [source, setSource] = useState<Source>(schedule ? sourceOf(schedule) : 'command')
  const [scriptId, setScriptId] = useState(schedule?.scriptId ?? undefined)
  const [verify, setVerify] = useState(gateOf(schedule?.verify))
  const [rollback, setRollback] = useState(gateOf(schedule?.rollback))
  const kept = schedule?.secretParams ?? []
  const isCopy = source === 'copy'
  const scripts = useTexts(listed, [scriptId, verify.scriptId, rollback.scriptId])
  const stored = (id: number | undefined) => scripts.find((one) => one.id === id)
  const script = source === 'stored' ? stored(scriptId) : undefined
  const ofScripts = isCopy ? [] : declaredBy([script, stored(verify.scriptId), stored(rollback.scriptId)])
  const isDeclared = (wanted: string) => ofScripts.some(({ name }) => name === wanted)
  const [secretNames, setSecretNames] = useState(() => kept.filter((name) => !isDeclared(name)).join(', '))
  const hasParams = !isCopy && (script === undefined || script.params?.length === 0)
  const named = hasParams ? secretsNamed(secretNames).filter(({ name }) => !isDeclared(name)) : []
  const asked = new Set([...ofScripts, ...named].map(({ name }) => name))
  return {
    scripts,
    source,
    setSource,
    isCopy,
    script,
    setScriptId,
    gates: { verify, rollback },
    setGates: { verify: setVerify, rollback: setRollback },
    /** Whether it is still what the schedule runs or copies. */
    isOwn:
      schedule !== undefined &&
      source === sourceOf(schedule) &&
      script?.id === (schedule.scriptId ?? undefined),
    hasParams,
    secretNames,
    setSecretNames,
    /** The params that its stored scripts declare. */
    declared: askedOf(ofScripts, kept),
    /** Those that are named beside. */
    secrets: askedOf(named, kept),
    /** Secret params that it has and that nothing asks for any more. */
    dropped: kept.filter((name) => !asked.has(name)),
  }
}

interface ActionFieldsProps {
  action: ReturnType<typeof useAction>
  schedule: Schedule | undefined
  /** What is known of the file that it has. */
  keptFile: string
}

/** A script with its params, and what follows on it. */
function ScriptAction({ action, isGated }: Pick<ActionFieldsProps, 'action'> & { isGated: boolean }) {
  const { scripts, source, script, setScriptId, gates, setGates } = action
  return (
    <>
      <ScriptFields isStored={source === 'stored'} scripts={scripts} script={script} onChoose={setScriptId} />
      {action.declared.map((param) => (
        <ParamField key={`${script?.id} ${param.name}`} param={param} />
      ))}
      <details open={isGated}>
        <summary>Verify and roll back</summary>
        <div class="gates">
          {(['verify', 'rollback'] as const).map((gate) => (
            <GateFields
              key={gate}
              gate={gate}
              scripts={scripts}
              chosen={gates[gate]}
              onChange={setGates[gate]}
            />
          ))}
        </div>
      </details>
    </>
  )
}

/** What it runs or copies, and how. */
export function ActionFields({ action, schedule, keptFile }: ActionFieldsProps) {
  const { source, setSource, isCopy, script, hasParams, secretNames, setSecretNames, secrets } = action
  return (
    <>
      <div class="field">
        <span class="label">What</span>
        <Choice label="What to run" options={sources} chosen={source} onChoose={setSource} />
      </div>
      {isCopy ? (
        <CopyFields scheduled={{ kept: schedule?.copy ? keptFile : undefined }} />
      ) : (
        <ScriptAction
          action={action}
          isGated={schedule?.verify !== undefined || schedule?.rollback !== undefined}
        />
      )}
      <RunOptions
        does={isCopy ? 'copy' : 'script'}
        hasParams={hasParams}
        secretNames={secretNames}
        onSecretNames={setSecretNames}
        secrets={secrets}
        timeout={isCopy ? copyTimeout : (script?.timeout ?? defaultTimeout)}
        keptStdin={schedule?.stdin ? keptFile : undefined}
      />
    </>
  )
}
