import { useState } from 'preact/hooks'
import type { Schedule } from '../../core/protocol/http/schedules.ts'
import type { Script, ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { GateOption } from '../../core/protocol/http/tasks.ts'
import { copyTimeout, defaultTimeout } from '../../core/tasks/plan.ts'
import { Choice } from '../parts/field.tsx'
import { CopyFields, FetchFields } from './copy-fields.tsx'
import { type ChosenGate, GateFields, noGate } from './gate-fields.tsx'
import { type Does, RunOptions } from './run-options.tsx'
import { ParamField, ScriptFields, useTexts } from './scripts.tsx'
import { secretsNamed } from './task-of.ts'

const sources = [
  ['command', 'A command'],
  ['stored', 'A stored script'],
  ['copy', 'Copy a file'],
  ['fetch', 'Fetch a file'],
] as const
type Source = (typeof sources)[number][0]

const scheduledSources = sources.filter(([source]) => source !== 'fetch')

function sourceOf({ copy, scriptId }: Schedule): Source {
  if (copy !== null) return 'copy'
  return scriptId === null ? 'command' : 'stored'
}

function gateOf(gate: GateOption | undefined): ChosenGate {
  if (gate === undefined) return noGate
  return { source: gate.scriptId === undefined ? 'command' : 'stored', scriptId: gate.scriptId }
}

/** Params of several scripts; for a repeated name the first declaration counts. */
function declaredBy(scripts: readonly (ScriptSummary | undefined)[]): Script['params'] {
  const params = scripts.flatMap((script) => script?.params ?? [])
  return params.filter(({ name }, at) => params.findIndex((other) => other.name === name) === at)
}

const keepHint = 'leave empty to keep it'

/** Makes secret params of a schedule optional, because it keeps their values. */
function askedOf(params: Script['params'], kept: readonly string[]): Script['params'] {
  return params.map((param) =>
    param.secret && kept.includes(param.name)
      ? { ...param, required: false, description: [param.description, keepHint].filter(Boolean).join(' · ') }
      : param,
  )
}

/** State of a form that runs, copies or fetches; `schedule`: the schedule being edited. */
export function useAction(
  listed: readonly ScriptSummary[],
  { schedule, fail }: { schedule?: Schedule | undefined; fail?: (error: unknown) => void } = {},
) {
  const [source, setSource] = useState<Source>(schedule ? sourceOf(schedule) : 'command')
  const [scriptId, setScriptId] = useState(schedule?.scriptId ?? undefined)
  const [verify, setVerify] = useState(gateOf(schedule?.verify))
  const [rollback, setRollback] = useState(gateOf(schedule?.rollback))
  const [isCheck, setCheck] = useState(false)
  const kept = schedule?.secretParams ?? []
  const does: Does = source === 'copy' || source === 'fetch' ? source : 'script'
  const scripts = useTexts(listed, [scriptId, verify.scriptId, rollback.scriptId], fail)
  const stored = (id: number | undefined) => scripts.find((one) => one.id === id)
  const script = source === 'stored' ? stored(scriptId) : undefined
  const declared =
    does === 'script' ? declaredBy([script, stored(verify.scriptId), stored(rollback.scriptId)]) : []
  const isDeclared = (wanted: string) => declared.some(({ name }) => name === wanted)
  const [secretNames, setSecretNames] = useState(() => kept.filter((name) => !isDeclared(name)).join(', '))
  const hasParams = does === 'script' && (script === undefined || script.params?.length === 0)
  const named = hasParams ? secretsNamed(secretNames).filter(({ name }) => !isDeclared(name)) : []
  const asked = new Set([...declared, ...named].map(({ name }) => name))
  return {
    scripts,
    source,
    setSource: (wanted: Source): void => {
      setSource(wanted)
      setCheck(false)
    },
    does,
    isCopy: does === 'copy',
    isCheck,
    setCheck,
    scriptId,
    script,
    setScriptId,
    gates: { verify, rollback },
    setGates: { verify: setVerify, rollback: setRollback },
    /** Whether the action is still that of the schedule. */
    isOwn:
      schedule !== undefined &&
      source === sourceOf(schedule) &&
      script?.id === (schedule.scriptId ?? undefined),
    hasParams,
    secretNames,
    setSecretNames,
    declared: askedOf(declared, kept),
    /** Secret params entered by name. */
    secrets: askedOf(named, kept),
    /** Secret params of the schedule that no field asks for. */
    dropped: kept.filter((name) => !asked.has(name)),
  }
}

type Action = ReturnType<typeof useAction>

interface Scheduled {
  schedule: Schedule | undefined
  keptFile: string
}

function ScriptAction({ action, isGated }: { action: Action; isGated: boolean }) {
  const { scripts, source, script, scriptId, setScriptId, gates, setGates } = action
  return (
    <>
      <ScriptFields isStored={source === 'stored'} scripts={scripts} script={script} onChoose={setScriptId} />
      {action.declared.map((param) => (
        <ParamField key={`${scriptId} ${param.name}`} param={param} />
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

/** Choice of an action, with its fields and options; `scheduled` in the form of a schedule. */
export function ActionFields({ action, scheduled }: { action: Action; scheduled?: Scheduled }) {
  const { source, does, isCopy, script, hasParams, secretNames, secrets } = action
  const { schedule, keptFile } = scheduled ?? {}
  return (
    <>
      <div class="field">
        <span class="label">What</span>
        <Choice
          label="What to run"
          options={scheduled ? scheduledSources : sources}
          chosen={source}
          onChoose={action.setSource}
        />
      </div>
      {isCopy && (
        <CopyFields
          onCheck={action.setCheck}
          scheduled={scheduled && { kept: schedule?.copy ? keptFile : undefined }}
        />
      )}
      {does === 'fetch' && <FetchFields />}
      {does === 'script' && (
        <ScriptAction
          action={action}
          isGated={schedule?.verify !== undefined || schedule?.rollback !== undefined}
        />
      )}
      <RunOptions
        does={does}
        hasParams={hasParams}
        secretNames={secretNames}
        onSecretNames={action.setSecretNames}
        secrets={secrets}
        timeout={does === 'script' ? (script?.timeout ?? defaultTimeout) : copyTimeout}
        keptStdin={schedule?.stdin ? keptFile : undefined}
      />
    </>
  )
}
