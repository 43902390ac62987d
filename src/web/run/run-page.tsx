import { useEffect, useState } from 'preact/hooks'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { Started, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { firstLine } from '../../core/script/first-line.ts'
import { asksFirst } from '../../core/task/consent.ts'
import { counted } from '../../ui/text/counted.ts'
import { all, call, newKey, said } from '../api.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { followHosts, liveHosts } from '../hosts/live-hosts.ts'
import { Fault } from '../parts/fault.tsx'
import { fieldsOf } from '../parts/fields-of.ts'
import { HostSet } from '../parts/host-set.tsx'
import { Question } from '../parts/question.tsx'
import { useTitle } from '../parts/use-title.ts'
import { go } from '../route.ts'
import { useStore } from '../store.ts'
import { fleetSize, namedHosts, useNamed } from './named-hosts.ts'
import { StoredScript } from './stored-script.tsx'
import { TargetField } from './target-field.tsx'
import { taskOf } from './task-of.ts'

/** `‘reboot’`, `the script deploy`. */
function ranSaid({ script, scriptId }: TaskCreate, scripts: readonly Script[]): string {
  if (script === undefined) return `the script ${scripts.find(({ id }) => id === scriptId)?.name ?? ''}`
  const more = script.content.trim().includes('\n') ? ' …' : ''
  return `‘${firstLine(script.content) ?? ''}’${more}`
}

/** What waits for an answer: the hosts it would run on are those that were asked about, whoever joins meanwhile. */
interface Asked {
  body: TaskCreate
  hosts: readonly Host[]
  isFleet: boolean
}

const onHosts = ({ hosts, isFleet }: Pick<Asked, 'hosts' | 'isFleet'>) =>
  `on ${isFleet ? 'all ' : ''}${counted(hosts.length, 'host')}`

export function RunPage() {
  useTitle('Run')
  const { hosts } = useStore(liveHosts)
  const chosen = useStore(chosenHosts)
  const [scripts, setScripts] = useState<readonly Script[]>([])
  const [source, setSource] = useState<'command' | 'stored'>('command')
  const [scriptId, setScriptId] = useState<number | undefined>()
  const [selector, setSelector] = useState('')
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [asked, setAsked] = useState<Asked | undefined>()
  // The same for a second try, so that a lost answer runs nothing twice.
  const [key, setKey] = useState(newKey)
  const script = source === 'stored' ? scripts.find(({ id }) => id === scriptId) : undefined
  const declared = script?.params ?? []
  const targets = hosts.filter((host) => chosen.has(host.id))
  const named = useNamed(targets.length > 0 ? '' : selector)
  const count =
    targets.length > 0 ? targets.length : named !== undefined && 'count' in named ? named.count : 0
  useEffect(() => {
    const leave = new AbortController()
    void followHosts(leave.signal)
    all<Script>('api/scripts').then(setScripts, (error: unknown) => setFault(said(error)))
    return () => leave.abort()
  }, [])

  async function start(body: TaskCreate): Promise<void> {
    const { taskId } = await call<Started>('POST', 'api/tasks', { body, headers: { 'idempotency-key': key } })
    go('tasks', taskId)
  }

  /** Starts it, or asks first. */
  async function propose(body: TaskCreate): Promise<void> {
    const { selector: wanted } = body.target
    const meant = wanted === undefined ? targets : await namedHosts(wanted)
    const total = await fleetSize()
    if (!asksFirst(meant.length, total)) return start(body)
    const target = { hostIds: meant.map(({ id }) => id) }
    setAsked({ body: { ...body, target }, hosts: meant, isFleet: meant.length >= total })
    setBusy(false)
  }

  function attempt(work: Promise<void>): void {
    setBusy(true)
    setFault('')
    work.catch((error: unknown) => {
      setFault(said(error))
      setBusy(false)
    })
  }

  function submit(event: SubmitEvent): void {
    event.preventDefault()
    const field = fieldsOf(event.currentTarget as HTMLFormElement)
    const ids = targets.map(({ id }) => id)
    const body = taskOf(field, ids, declared)
    if (typeof body === 'string') setFault(body)
    else attempt(propose(body))
  }

  return (
    <section class="page">
      <div class="heading">
        <h1>Run a script</h1>
      </div>
      <form
        class="run"
        onSubmit={submit}
        onInput={() => {
          setKey(newKey())
          setFault('')
        }}
      >
        <TargetField targets={targets} selector={selector} named={named} onSelector={setSelector} />
        <div class="field">
          <span class="label">What</span>
          <div class="choice" role="group" aria-label="What to run">
            <button type="button" aria-pressed={source === 'command'} onClick={() => setSource('command')}>
              A command
            </button>
            <button type="button" aria-pressed={source === 'stored'} onClick={() => setSource('stored')}>
              A stored script
            </button>
          </div>
        </div>
        {source === 'command' ? (
          <>
            <label>
              Command
              <textarea
                name="content"
                class="code"
                rows={5}
                required
                spellcheck={false}
                placeholder="uptime"
                onKeyDown={(event) => {
                  if (event.key === 'Enter' && event.ctrlKey) event.currentTarget.form?.requestSubmit()
                }}
              />
            </label>
            <label class="short">
              Interpreter
              <select name="type">
                <option value="BASH">Bash</option>
                <option value="PYTHON">Python</option>
                <option value="POWERSHELL">PowerShell</option>
              </select>
            </label>
          </>
        ) : (
          <StoredScript scripts={scripts} script={script} onChoose={setScriptId} />
        )}
        <details>
          <summary>Options</summary>
          <div class="columns">
            {declared.length === 0 && (
              <label>
                Parameters, KEY=VALUE on a line each
                <textarea name="params" class="code" rows={3} spellcheck={false} />
              </label>
            )}
            <label>
              Strategy
              <select name="strategy">
                <option value="PARALLEL">All at once</option>
                <option value="ROLLING">Batch by batch</option>
                <option value="SEQUENTIAL">One after the other</option>
              </select>
            </label>
            <label>
              Timeout in seconds
              <input name="timeout" type="number" min="0" max="31536000" placeholder="300" />
            </label>
            <label>
              Run as
              <input name="runAs" placeholder="the agent’s user" spellcheck={false} autoCapitalize="off" />
            </label>
          </div>
        </details>
        <Fault text={fault} />
        <div class="actions">
          <button type="submit" class="primary" disabled={isBusy}>
            {count === 0
              ? 'Run'
              : `Run on ${targets.length === 1 ? targets[0]?.hostname : counted(count, 'host')}`}
          </button>
          {source === 'command' && <small class="hint">Ctrl+Enter runs the command</small>}
        </div>
      </form>
      {asked && (
        <Question
          title={`Run ${ranSaid(asked.body, scripts)} ${onHosts(asked)}?`}
          yes={`Run ${onHosts(asked)}`}
          no="Don’t run"
          isDangerous
          onNo={() => setAsked(undefined)}
          onYes={() => {
            setAsked(undefined)
            attempt(start(asked.body))
          }}
        >
          <HostSet hosts={asked.hosts} />
        </Question>
      )}
    </section>
  )
}
