import { useEffect, useState } from 'preact/hooks'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { copyTimeout, defaultTimeout } from '../../core/task/plan.ts'
import { counted } from '../../ui/text/counted.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { followHosts, liveHosts } from '../hosts/live-hosts.ts'
import { Choice } from '../parts/choice.tsx'
import { Fault } from '../parts/fault.tsx'
import { FaultsOfForm, useFormFaults } from '../parts/field.tsx'
import { fieldsOf, fileIn } from '../parts/fields-of.ts'
import { Question } from '../parts/question.tsx'
import { useTitle } from '../parts/use-title.ts'
import { useStore } from '../store.ts'
import { CopyFields } from './copy-fields.tsx'
import { declaredBy } from './declared-by.ts'
import { FetchFields } from './fetch-fields.tsx'
import { GateFields, noGate } from './gate-fields.tsx'
import { useNamed } from './named-hosts.ts'
import { type Doing, questionOf, startSaid } from './order-words.ts'
import { PlanPreview } from './plan-preview.tsx'
import { RunOptions } from './run-options.tsx'
import { ScriptFields } from './script-fields.tsx'
import { ParamField } from './stored-script.tsx'
import { TargetField } from './target-field.tsx'
import { copyTaskOf, fetchTaskOf, secretsNamed, taskOf } from './task-of.ts'
import { UploadBar } from './upload-bar.tsx'
import { useScripts, useTexts } from './use-scripts.ts'
import { type Order, useStart } from './use-start.ts'

const sources = [
  ['command', 'A command'],
  ['stored', 'A stored script'],
  ['copy', 'Copy a file'],
  ['fetch', 'Fetch a file'],
] as const
type Source = (typeof sources)[number][0]

const noScripts: readonly ScriptSummary[] = []

const titles: Record<Source, string> = {
  command: 'Run a script',
  stored: 'Run a script',
  copy: 'Copy a file',
  fetch: 'Fetch a file',
}

/** What of the form is state: what it does, and which scripts. */
function useWhat(listed: readonly ScriptSummary[], fail: (error: unknown) => void) {
  const [source, setSource] = useState<Source>('command')
  const [scriptId, setScriptId] = useState<number | undefined>()
  const [verify, setVerify] = useState(noGate)
  const [rollback, setRollback] = useState(noGate)
  const [isCheck, setCheck] = useState(false)
  const [secretNames, setSecretNames] = useState('')
  const scripts = useTexts(listed, [scriptId, verify.scriptId, rollback.scriptId], fail)
  const stored = (wanted: number | undefined) => scripts.find(({ id }) => id === wanted)
  const script = source === 'stored' ? stored(scriptId) : undefined
  const runs = source === 'command' || source === 'stored'
  const hasParams = runs && (script === undefined || script.params?.length === 0)
  const doing: Doing = runs ? 'run' : source === 'copy' && isCheck ? 'check' : source
  return {
    scripts,
    source,
    setSource: (wanted: Source): void => {
      setSource(wanted)
      setCheck(false)
    },
    script,
    scriptId,
    setScriptId,
    gates: { verify, rollback },
    setGates: { verify: setVerify, rollback: setRollback },
    setCheck,
    doing,
    /** The params that its stored scripts declare. */
    declared: runs ? declaredBy([script, stored(verify.scriptId), stored(rollback.scriptId)]) : [],
    hasParams,
    secretNames,
    setSecretNames,
    secrets: hasParams ? secretsNamed(secretNames) : [],
  }
}

interface WhatFieldsProps {
  what: ReturnType<typeof useWhat>
  scripts: readonly ScriptSummary[]
}

/** What runs, and what follows on it; or which file goes where, or comes. */
function WhatFields({ what, scripts }: WhatFieldsProps) {
  const { source, script, scriptId, gates, setGates, declared } = what
  if (source === 'copy') return <CopyFields onCheck={what.setCheck} />
  if (source === 'fetch') return <FetchFields />
  return (
    <>
      <ScriptFields
        isStored={source === 'stored'}
        scripts={scripts}
        script={script}
        onChoose={what.setScriptId}
      />
      {declared.map((param) => (
        <ParamField key={`${scriptId} ${param.name}`} param={param} />
      ))}
      <details>
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

export function RunPage() {
  useTitle('Run')
  const { hosts } = useStore(liveHosts)
  const chosen = useStore(chosenHosts)
  const { form, faults, fail, clear, onInvalidCapture } = useFormFaults()
  const what = useWhat(useScripts(fail) ?? noScripts, fail)
  const { scripts } = what
  const [selector, setSelector] = useState('')
  const { isBusy, asked, progress, stop, propose, answer, renew } = useStart({ fail, clear })
  const { source, script, doing, declared, secrets } = what
  useEffect(() => {
    const leave = new AbortController()
    void followHosts(leave.signal)
    return () => leave.abort()
  }, [])
  const targets = hosts.filter((host) => chosen.has(host.id))
  const named = useNamed(targets.length > 0 ? '' : selector)
  const count =
    targets.length > 0 ? targets.length : named !== undefined && 'count' in named ? named.count : 0
  const where =
    targets.length === 1 ? (targets[0]?.hostname ?? '') : count === 0 ? '' : counted(count, 'host')

  function orderOf(filled: HTMLFormElement): Order {
    const field = fieldsOf(filled)
    const ids = targets.map(({ id }) => id)
    if (source === 'fetch') return { body: fetchTaskOf(field, ids), file: undefined }
    if (source === 'copy') {
      const file = fileIn(filled, 'copy.fileId')
      return { body: copyTaskOf(field, ids, file), file, isSecret: field('secret') !== '' }
    }
    const file = fileIn(filled, 'stdin.fileId')
    const body = taskOf(field, ids, [...declared, ...secrets])
    return { body: { ...body, ...(file && { stdin: { fileId: '' } }) }, file }
  }

  return (
    <section class="page">
      <div class="heading">
        <h1>{titles[source]}</h1>
      </div>
      <FaultsOfForm.Provider value={faults.at}>
        <form
          ref={form}
          class="run"
          onSubmit={(event) => {
            event.preventDefault()
            const { currentTarget: filled, submitter } = event
            propose(() => orderOf(filled), targets, (submitter as HTMLButtonElement | null)?.value === 'plan')
          }}
          onInvalidCapture={onInvalidCapture}
          onInput={() => {
            renew()
            clear()
          }}
        >
          <TargetField targets={targets} selector={selector} named={named} onSelector={setSelector} />
          <div class="field">
            <span class="label">What</span>
            <Choice label="What to run" options={sources} chosen={source} onChoose={what.setSource} />
          </div>
          <WhatFields what={what} scripts={scripts} />
          <RunOptions
            does={source === 'copy' || source === 'fetch' ? source : 'script'}
            hasParams={what.hasParams}
            secretNames={what.secretNames}
            onSecretNames={what.setSecretNames}
            secrets={secrets}
            timeout={doing === 'run' ? (script?.timeout ?? defaultTimeout) : copyTimeout}
          />
          <Fault text={faults.rest} />
          {progress && <UploadBar progress={progress} onStop={stop} />}
          <div class="actions">
            <button type="submit" class="primary" disabled={isBusy}>
              {startSaid(doing, where)}
            </button>
            <button type="submit" value="plan" disabled={isBusy}>
              Show the plan
            </button>
            {source === 'command' && <small class="hint wide">Ctrl+Enter runs the command</small>}
          </div>
        </form>
      </FaultsOfForm.Provider>
      {asked && (
        <Question
          {...questionOf(asked, scripts)}
          isDangerous={asked.body.fetch === undefined && asked.body.copy?.check === undefined}
          onNo={() => answer(false)}
          onYes={() => answer(true)}
        >
          <PlanPreview body={asked.body} file={asked.file} hosts={asked.hosts} scripts={scripts} />
        </Question>
      )}
    </section>
  )
}
