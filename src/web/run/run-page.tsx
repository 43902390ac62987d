import { useEffect, useState } from 'preact/hooks'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { Started } from '../../core/protocol/http/tasks.ts'
import { all, call, said } from '../api.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { followHosts, liveHosts } from '../hosts/live-hosts.ts'
import { useTitle } from '../parts/use-title.ts'
import { go, hrefOf } from '../route.ts'
import { useStore } from '../store.ts'
import { taskOf } from './task-of.ts'

const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')

export function RunPage() {
  useTitle('Run')
  const { hosts } = useStore(liveHosts)
  const chosen = useStore(chosenHosts)
  const [scripts, setScripts] = useState<readonly Script[]>([])
  const [source, setSource] = useState<'command' | 'stored'>('command')
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  // The same for a second try, so that a lost answer runs nothing twice.
  const [key, setKey] = useState(newKey)
  const targets = hosts.filter((host) => chosen.has(host.id))
  useEffect(() => {
    const leave = new AbortController()
    void followHosts(leave.signal)
    all<Script>('api/scripts').then(setScripts, (error: unknown) => setFault(said(error)))
    return () => leave.abort()
  }, [])

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setFault('')
    const body = taskOf(
      (name) => {
        const value = form.get(name)
        return typeof value === 'string' ? value : ''
      },
      targets.map(({ id }) => id),
    )
    if (typeof body === 'string') return setFault(body)
    setBusy(true)
    try {
      const { taskId } = await call<Started>('POST', 'api/tasks', {
        body,
        headers: { 'idempotency-key': key },
      })
      go('tasks', taskId)
    } catch (error) {
      setFault(said(error))
      setBusy(false)
    }
  }

  return (
    <section class="page">
      <div class="heading">
        <h1>Run a script</h1>
      </div>
      <form class="run" onSubmit={(event) => void submit(event)} onInput={() => setKey(newKey())}>
        <div class="field">
          <span class="label">On</span>
          <div class="chips">
            {targets.map(({ id, hostname }) => (
              <button
                key={id}
                type="button"
                class="chip"
                aria-label={`Leave out ${hostname}`}
                onClick={() => chosenHosts.update((now) => new Set([...now].filter((other) => other !== id)))}
              >
                {hostname} <span aria-hidden="true">×</span>
              </button>
            ))}
            {targets.length === 0 && (
              <label class="inline">
                <input
                  name="selector"
                  placeholder="Selector, such as web[1-20] or @env:test"
                  aria-label="Selector"
                />
              </label>
            )}
            <a href={hrefOf('hosts')}>{targets.length === 0 ? 'or choose hosts' : 'Choose others'}</a>
          </div>
        </div>
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
          <label>
            Script
            <select name="scriptId" required>
              <option value="">{scripts.length === 0 ? 'None is stored yet' : 'Choose one …'}</option>
              {scripts.map(({ id, name, description }) => (
                <option key={id} value={id}>
                  {description === '' ? name : `${name} – ${description}`}
                </option>
              ))}
            </select>
          </label>
        )}
        <details>
          <summary>Options</summary>
          <div class="columns">
            <label>
              Parameters, KEY=VALUE on a line each
              <textarea name="params" class="code" rows={3} spellcheck={false} />
            </label>
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
        <p role="alert" class="fault">
          {fault}
        </p>
        <div class="actions">
          <button type="submit" class="primary" disabled={isBusy}>
            {targets.length === 0
              ? 'Run'
              : `Run on ${targets.length === 1 ? targets[0]?.hostname : `${targets.length} hosts`}`}
          </button>
          <small class="hint">Ctrl+Enter runs the command</small>
        </div>
      </form>
    </section>
  )
}
