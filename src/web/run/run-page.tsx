import { useEffect, useState } from 'preact/hooks'
import { counted } from '../../cli/text/amounts.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { followHosts, liveHosts } from '../hosts/live-hosts.ts'
import { useTitle } from '../parts/browser.ts'
import { FaultsOfForm, fieldsOf, fileIn, useFormFaults } from '../parts/field.tsx'
import { Question } from '../parts/question.tsx'
import { Fault } from '../parts/shown.tsx'
import { useStore } from '../store.ts'
import { ActionFields, useAction } from './action-fields.tsx'
import { useNamed } from './named-hosts.ts'
import { questionOf, startText } from './order-words.ts'
import { PlanPreview } from './plan-preview.tsx'
import { useScripts } from './scripts.tsx'
import { TargetField } from './target-field.tsx'
import { copyTaskOf, fetchTaskOf, taskOf } from './task-of.ts'
import { UploadBar } from './upload.tsx'
import { type Order, useStart } from './use-start.ts'

const noScripts: readonly ScriptSummary[] = []

const titles = {
  script: 'Run a script',
  copy: 'Copy a file',
  fetch: 'Fetch a file',
}

export function RunPage() {
  useTitle('Run')
  const { hosts } = useStore(liveHosts)
  const chosen = useStore(chosenHosts)
  const { form, faults, fail, clear, onInvalidCapture } = useFormFaults()
  const action = useAction(useScripts(fail) ?? noScripts, { fail })
  const { scripts, does, isCheck, declared, secrets } = action
  const doing = does === 'script' ? 'run' : isCheck ? 'check' : does
  const [selector, setSelector] = useState('')
  const { isBusy, asked, progress, stop, propose, answer, renew } = useStart({ fail, clear })
  useEffect(() => {
    const controller = new AbortController()
    void followHosts(controller.signal)
    return () => controller.abort()
  }, [])
  const targets = hosts.filter((host) => chosen.has(host.id))
  const named = useNamed(targets.length > 0 ? '' : selector)
  const count =
    targets.length > 0 ? targets.length : named !== undefined && 'count' in named ? named.count : 0
  const where =
    targets.length === 1 ? (targets[0]?.hostname ?? '') : count === 0 ? '' : counted(count, 'host')

  function orderOf(filled: HTMLFormElement): Order {
    const field = fieldsOf(filled)
    const hosts = targets.length > 0 ? { hostIds: targets.map(({ id }) => id) } : undefined
    if (does === 'fetch') return { body: fetchTaskOf(field, hosts), file: undefined }
    if (does === 'copy') {
      const file = fileIn(filled, 'copy.fileId')
      return { body: copyTaskOf(field, hosts, file), file, isSecret: field('secret') !== '' }
    }
    const file = fileIn(filled, 'stdin.fileId')
    const body = taskOf(field, hosts, [...declared, ...secrets])
    return { body: { ...body, ...(file && { stdin: { fileId: '' } }) }, file }
  }

  return (
    <section class="page">
      <div class="heading">
        <h1>{titles[does]}</h1>
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
          <ActionFields action={action} />
          <Fault text={faults.rest} />
          {progress && <UploadBar progress={progress} onStop={stop} />}
          <div class="actions">
            <button type="submit" class="primary" disabled={isBusy}>
              {startText(doing, where)}
            </button>
            <button type="submit" value="plan" disabled={isBusy}>
              Show the plan
            </button>
            {action.source === 'command' && <small class="hint wide">Ctrl+Enter runs the command</small>}
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
