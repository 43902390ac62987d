import { useEffect, useState } from 'preact/hooks'
import { counted } from '../../cli/text/amounts.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { Started } from '../../core/protocol/http/tasks.ts'
import { asksFirst } from '../../core/tasks/plan.ts'
import { call, newKey } from '../api.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { followHosts, liveHosts } from '../hosts/live-hosts.ts'
import { useTitle } from '../parts/browser.ts'
import { FaultsOfForm, fieldsOf, fileIn, useFormFaults } from '../parts/field.tsx'
import { Fault, Question } from '../parts/shown.tsx'
import { go } from '../route.ts'
import { useStore } from '../store.ts'
import { ActionFields, useAction } from './action-fields.tsx'
import { type Asked, type Order, PlanPreview, questionOf, startText } from './plan-preview.tsx'
import { useScripts } from './scripts.tsx'
import { fleetSize, TargetField, targetHosts, useNamed } from './target-field.tsx'
import { copyTaskOf, fetchTaskOf, taskOf } from './task-of.ts'
import { UploadBar, useUpload } from './upload.tsx'

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

interface Outcome {
  fail: (error: unknown) => void
  clear: () => void
}

/** Starts a task from the form: confirms its plan, uploads its file, and starts it once. */
function useStart({ fail, clear }: Outcome) {
  const [isBusy, setBusy] = useState(false)
  const [asked, setAsked] = useState<Asked | undefined>()
  const { progress, stop, begin, send } = useUpload()
  // The same key for a retry, so that a lost response does not start the task twice.
  const [key, setKey] = useState(newKey)

  async function start(order: Order): Promise<void> {
    const body = await send(order)
    const { taskId } = await call<Started>('POST', 'api/tasks', { body, headers: { 'idempotency-key': key } })
    go('tasks', taskId)
  }

  /** Starts it, or first shows its plan: on request, or for many hosts. */
  async function propose(order: Order, chosen: readonly Host[], isPlan: boolean): Promise<void> {
    const { target } = order.body
    const hosts = target.hostIds === undefined ? await targetHosts(target) : chosen
    const total = await fleetSize()
    if (!isPlan && !asksFirst(hosts.length, total)) return start(order)
    const body = { ...order.body, target: { hostIds: hosts.map(({ id }) => id) } }
    setAsked({ ...order, body, hosts, isFleet: hosts.length >= total })
    setBusy(false)
  }

  function attempt(work: () => Promise<void>): void {
    setBusy(true)
    clear()
    const signal = begin()
    work().catch((error: unknown) => {
      if (!signal.aborted) fail(error)
      setBusy(false)
    })
  }

  return {
    isBusy,
    asked,
    progress,
    stop,
    propose: (order: () => Order, chosen: readonly Host[], isPlan: boolean) =>
      attempt(async () => propose(order(), chosen, isPlan)),
    answer: (isYes: boolean): void => {
      setAsked(undefined)
      if (isYes && asked) attempt(() => start(asked))
    },
    /** Edits make it another task. */
    renew: () => setKey(newKey()),
  }
}
