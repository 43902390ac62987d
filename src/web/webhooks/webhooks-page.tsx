import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Page } from '../../core/protocol/http/common.ts'
import type { Delivery, Webhook, WebhookSaved } from '../../core/protocol/http/webhooks.ts'
import { deliveryStatuses } from '../../core/webhooks/webhook.ts'
import { all, call, usePolled, withQuery } from '../api.ts'
import { copyText, useTitle } from '../parts/browser.ts'
import { Choice } from '../parts/field.tsx'
import { Badge, Facts, Fault, LongName, Time } from '../parts/shown.tsx'
import { go, hrefOf } from '../route.ts'
import { Deliveries } from './deliveries.tsx'
import { type Outcome, WebhookActions } from './webhook-actions.tsx'
import { formatTexts, WebhookForm } from './webhook-form.tsx'

const stateOf = ({ enabled }: Webhook) => (enabled ? 'ENABLED' : 'DISABLED')

export function WebhooksPage() {
  useTitle('Webhooks')
  const { value: webhooks, fault } = usePolled(() => all<Webhook>('api/webhooks'), [])
  return (
    <section class="page">
      <div class="heading">
        <h1>Webhooks</h1>
        <span class="spring" />
        <button type="button" class="primary" onClick={() => go('webhooks', 'new')}>
          New webhook
        </button>
      </div>
      <Fault text={fault} />
      {webhooks?.length === 0 && fault === '' && <p class="empty">No webhooks yet.</p>}
      {webhooks !== undefined && webhooks.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>Webhook</th>
              <th>Events</th>
              <th class="w-status">Selector</th>
              <th class="w-format">Format</th>
              <th class="w-badge">State</th>
            </tr>
          </thead>
          <tbody>
            {webhooks.map((webhook) => (
              <tr key={webhook.id}>
                <td class="whole-line">
                  <a class="name" href={hrefOf('webhooks', `${webhook.id}`)}>
                    <LongName text={webhook.name} />
                  </a>
                  <small class="under clip" title={webhook.url}>
                    {webhook.url}
                  </small>
                </td>
                <td class="whole-line">
                  {webhook.events.map((event) => (
                    <span key={event} class="tag">
                      {event}
                    </span>
                  ))}
                </td>
                <td data-label="Selector">
                  {webhook.selector === null ? '–' : <LongName text={webhook.selector} />}
                </td>
                <td data-label="Format">{webhook.format}</td>
                <td>
                  <Badge state={stateOf(webhook)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

const mostRows = 200
const choices = ['', ...deliveryStatuses] as const
type Status = (typeof choices)[number]

interface View {
  webhook: Webhook
  deliveries: readonly Delivery[]
  counts: Record<Status, number>
}

export function WebhookPage({ id }: { id: string }) {
  const [status, setStatus] = useState<Status>('')
  const { value: view, fault, again } = usePolled(() => readView(id, status), [id, status])
  const [outcome, setOutcome] = useState<Outcome | undefined>()
  const [saved, setSaved] = useState<WebhookSaved | undefined>()
  const [isEdited, setEdited] = useState(false)
  useTitle(view?.webhook.name ?? 'Webhook')
  if (view === undefined)
    return (
      <section class="page">
        <h1>Webhook</h1>
        {fault === '' ? <p class="hint">Loading …</p> : <Fault text={fault} />}
      </section>
    )
  const { webhook, deliveries, counts } = view
  const applySaved = (next: WebhookSaved) => {
    setEdited(false)
    setSaved(next.secret === null ? undefined : next)
    again()
  }
  if (isEdited)
    return (
      <section class="page">
        <div class="heading">
          <h1>{`Change ‘${webhook.name}’`}</h1>
        </div>
        <WebhookForm webhook={webhook} onSaved={applySaved} onCancel={() => setEdited(false)} />
      </section>
    )
  return (
    <section class="page">
      <div class="heading">
        <h1>{webhook.name}</h1>
        <Badge state={stateOf(webhook)} />
        <span class="spring" />
        <div class="doings">
          <WebhookActions
            webhook={webhook}
            onOutcome={setOutcome}
            onSaved={applySaved}
            onEdit={() => setEdited(true)}
          />
        </div>
      </div>
      <Fault text={outcome?.isGood === false ? outcome.text : fault} />
      <p role="status" class="told">
        {outcome?.isGood ? outcome.text : ''}
      </p>
      <div class="panel">
        <WebhookFacts webhook={webhook} />
      </div>
      <div class="heading">
        <h2>Deliveries</h2>
        <Choice
          label="Status"
          options={choices.map((each) => [each, `${choiceText(each)} ${counts[each]}`] as const)}
          chosen={status}
          onChoose={setStatus}
        />
      </div>
      {deliveries.length === 0 ? (
        <p class="empty">{status === '' ? 'No deliveries yet.' : 'No deliveries with this status.'}</p>
      ) : (
        <Deliveries deliveries={deliveries} />
      )}
      {deliveries.length < counts[status] && (
        <p class="hint">{`${counts[status] - deliveries.length} more, older: rsm webhooks deliveries`}</p>
      )}
      {saved && (
        <SecretDialog name={saved.name} secret={saved.secret ?? ''} onDone={() => setSaved(undefined)} />
      )}
    </section>
  )
}

async function readView(id: string, status: Status): Promise<View> {
  const path = `api/webhooks/${encodeURIComponent(id)}`
  const list = (wanted: Status, size: number) =>
    call<Page<Delivery>>('GET', withQuery(`${path}/deliveries`, { status: wanted, size }))
  const [webhook, { content }, ...pages] = await Promise.all([
    call<Webhook>('GET', path),
    list(status, mostRows),
    ...choices.map((each) => list(each, 1)),
  ])
  const counts = Object.fromEntries(choices.map((each, at) => [each, pages[at]?.totalElements ?? 0]))
  return { webhook, deliveries: content, counts: counts as View['counts'] }
}

const choiceText = (status: Status) => (status === '' ? 'All' : status.toLowerCase().replaceAll('_', ' '))

function WebhookFacts({
  webhook: { url, events, selector, schedule, script, createdBy, format, owner, createdAt },
}: {
  webhook: Webhook
}) {
  return (
    <Facts
      rows={[
        ['URL', <LongName text={url} />],
        ['Events', events.join(', ')],
        ['Selector', selector && <LongName text={selector} />],
        ['Schedule', schedule && <LongName text={schedule} />],
        ['Script', script && <LongName text={script} />],
        ['Created by', createdBy && <LongName text={createdBy} />],
        ['Format', formatTexts[format]],
        ['Owner', owner],
        ['Created', <Time at={createdAt} />],
      ]}
    />
  )
}

export function NewWebhookPage() {
  useTitle('New webhook')
  const [saved, setSaved] = useState<WebhookSaved | undefined>()
  const open = ({ id }: WebhookSaved) => go('webhooks', `${id}`)
  return (
    <section class="page">
      <div class="heading">
        <h1>New webhook</h1>
      </div>
      <WebhookForm
        onSaved={(made) => (made.secret === null ? open(made) : setSaved(made))}
        onCancel={() => go('webhooks')}
      />
      {saved && <SecretDialog name={saved.name} secret={saved.secret ?? ''} onDone={() => open(saved)} />}
    </section>
  )
}

/** Shows the signing secret, which the server returns only once. Only its button closes it. */
function SecretDialog({ name, secret, onDone }: { name: string; secret: string; onDone: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const [isCopied, setCopied] = useState(false)
  useLayoutEffect(() => {
    dialog.current?.showModal()
    field.current?.select()
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby="secret-shown" onCancel={(event) => event.preventDefault()}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onDone()
        }}
      >
        <h2 id="secret-shown">{`The secret of ‘${name}’`}</h2>
        <p>It is shown only once. Give it to the receiver, which uses it to verify the sender.</p>
        <input ref={field} class="code" readOnly aria-label="Secret" value={secret} />
        <div class="actions">
          <button
            type="button"
            onClick={() => {
              field.current?.select()
              copyText(secret)
              setCopied(true)
            }}
          >
            Copy
          </button>
          <span role="status" class="hint">
            {isCopied ? 'Copied' : ''}
          </span>
          <span class="spring" />
          <button type="submit" class="primary">
            I have saved it
          </button>
        </div>
      </form>
    </dialog>
  )
}
