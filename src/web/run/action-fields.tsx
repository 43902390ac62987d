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

/** The params of several scripts; the first declaration of a name counts. */
function declaredBy(scripts: readonly (ScriptSummary | undefined)[]): Script['params'] {
  const params = scripts.flatMap((script) => script?.params ?? [])
  return params.filter(({ name }, at) => params.findIndex((other) => other.name === name) === at)
}

const keepHint = 'stays as it is where this is empty'

/** Secret params of a schedule keep their values where nothing is typed. */
function askedOf(params: Script['params'], kept: readonly string[]): Script['params'] {
  return params.map((param) =>
    param.secret && kept.includes(param.name)
      ? { ...param, required: false, description: [param.description, keepHint].filter(Boolean).join(' · ') }
      : param,
  )
}

/** The state of a form that runs, copies or fetches: `schedule` is the one that is changed. */
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
    /** Whether a copy only compares. */
    isCheck,
    setCheck,
    scriptId,
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
    declared: askedOf(declared, kept),
    /** Secret params that were named by hand. */
    secrets: askedOf(named, kept),
    /** Secret params of the schedule that nothing asks for any more. */
    dropped: kept.filter((name) => !asked.has(name)),
  }
}

type Action = ReturnType<typeof useAction>

interface Scheduled {
  /** Undefined for a new one. */
  schedule: Schedule | undefined
  /** Describes the file that it has. */
  keptFile: string
}

/** A script with its params, and what follows on it. */
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

/** What runs, or which file goes where, or comes, and how; `scheduled` in the form of a schedule. */
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
