import { useId, useState } from 'preact/hooks'
import type { Webhook, WebhookSaved } from '../../core/protocol/http/webhooks.ts'
import {
  type WebhookEvent,
  type WebhookFilter,
  type WebhookFormat,
  webhookEvents,
  webhookFilters,
  webhookFormats,
} from '../../core/webhooks/webhook.ts'
import { call } from '../api.ts'
import {
  FaultsOfForm,
  fieldsOf,
  InputField,
  NameField,
  SaveOrCancel,
  SelectField,
  useFault,
  useFormFaults,
  verbatim,
} from '../parts/field.tsx'
import { Fault } from '../parts/shown.tsx'
import { SelectorField } from '../run/target-field.tsx'
import { eventField, webhookOf, webhookPatchOf } from './webhook-of.ts'

/** When each event comes. */
const eventTexts: Record<WebhookEvent, string> = {
  'task.failed': 'A task has ended FAILED',
  'task.ended': 'A task has ended, with any result',
  'schedule.suspended': 'A schedule no longer runs',
  'schedule.skipped': 'A slot was not run, or its task could not be started',
  'host.offline': 'Hosts have been OFFLINE or NO LINK for a minute',
  'host.online': 'Hosts that were reported offline are back',
  'agent.revoked': 'The token of a host’s agent was revoked',
  'server.restore': 'A backup was restored; pending work is held',
}

const filterTexts: Record<WebhookFilter, { label: string; hint: string }> = {
  schedule: {
    label: 'Schedule',
    hint: 'Only events of this schedule; * for any schedule; empty: all events',
  },
  script: { label: 'Script', hint: 'Only events of this stored script' },
  createdBy: {
    label: 'Created by',
    hint: 'Only tasks that this user started, and schedules that this user owns',
  },
}

export const formatTexts: Record<WebhookFormat, string> = {
  JSON: 'JSON, as Standard Webhooks says',
  SLACK: 'A text for Slack',
  TEAMS: 'A text for Teams',
  DISCORD: 'A text for Discord',
}

interface WebhookFormProps {
  /** Undefined: a new one is made. */
  webhook?: Webhook
  onSaved: (saved: WebhookSaved) => void
  onCancel: () => void
}

/** A webhook as a form: a new one, or one that is changed. */
export function WebhookForm({ webhook, onSaved, onCancel }: WebhookFormProps) {
  const { form, faults, fail, clear, onInvalidCapture } = useFormFaults()
  const [isBusy, setBusy] = useState(false)

  async function save(): Promise<WebhookSaved> {
    const field = fieldsOf(form.current as HTMLFormElement)
    if (webhook) return call('PATCH', `api/webhooks/${webhook.id}`, { body: webhookPatchOf(field) })
    const disabled = field('disabled') === '' ? {} : { enabled: false }
    return call('POST', 'api/webhooks', { body: { ...webhookOf(field), ...disabled } })
  }

  function submit(event: SubmitEvent): void {
    event.preventDefault()
    setBusy(true)
    clear()
    save().then(onSaved, (error: unknown) => {
      fail(error)
      setBusy(false)
    })
  }

  return (
    <FaultsOfForm.Provider value={faults.at}>
      <form ref={form} class="run" onSubmit={submit} onInvalidCapture={onInvalidCapture} onInput={clear}>
        <WebhookFields webhook={webhook} />
        {!webhook && (
          <label class="inline">
            <input type="checkbox" name="disabled" /> Disabled at first
          </label>
        )}
        <Fault text={faults.rest} />
        <SaveOrCancel makes={webhook ? undefined : 'webhook'} isBusy={isBusy} onCancel={onCancel} />
      </form>
    </FaultsOfForm.Provider>
  )
}

function WebhookFields({ webhook }: { webhook: Webhook | undefined }) {
  return (
    <>
      <NameField name={webhook?.name} placeholder="on call" />
      <InputField
        name="url"
        label="URL"
        hint="https, to a public address; others only where the server allows them"
        required
        maxLength={2048}
        {...verbatim}
        placeholder="https://alerts.example.org/rsm"
        defaultValue={webhook?.url}
      />
      <EventPicker chosen={webhook?.events ?? []} />
      <SelectorField
        name="selector"
        label="Selector"
        hint="Only events of tasks and hosts that concern these hosts; empty: all"
        selector={webhook?.selector ?? ''}
      />
      {webhookFilters.map((filter) => (
        <InputField
          key={filter}
          name={filter}
          {...filterTexts[filter]}
          maxLength={128}
          {...verbatim}
          defaultValue={webhook?.[filter] ?? ''}
        />
      ))}
      <div class="pair">
        <SelectField
          name="format"
          label="Format"
          options={webhookFormats.map((format) => [format, formatTexts[format]])}
          chosen={webhook?.format}
        />
        <InputField
          name="secret"
          label="Secret"
          hint={webhook ? 'Empty: stays as it is' : 'Empty: made by the server'}
          type="password"
          class="code"
          autoComplete="new-password"
          placeholder="whsec_…"
        />
      </div>
    </>
  )
}

/** Picks the events that a webhook gets. */
function EventPicker({ chosen }: { chosen: readonly WebhookEvent[] }) {
  const fault = useFault('events')
  const labelId = useId()
  return (
    <div
      class="field"
      role="group"
      aria-labelledby={labelId}
      data-field="events"
      data-faulty={fault === undefined ? undefined : ''}
    >
      <span class="label" id={labelId}>
        Events
      </span>
      <div class="event-picker">
        {webhookEvents.map((event) => (
          <label key={event}>
            <input type="checkbox" name={eventField(event)} defaultChecked={chosen.includes(event)} />
            <span>
              <strong>{event}</strong>
              <small class="under">{eventTexts[event]}</small>
            </span>
          </label>
        ))}
      </div>
      {fault !== undefined && <Fault text={fault} />}
    </div>
  )
}
