import { useState } from 'preact/hooks'
import type { Webhook, WebhookSaved } from '../../core/protocol/http/webhooks.ts'
import { webhookFilters, webhookFormats } from '../../core/webhooks/webhook.ts'
import { call } from '../api.ts'
import { Fault } from '../parts/fault.tsx'
import { FaultsOfForm, Field, useFormFaults } from '../parts/field.tsx'
import { fieldsOf } from '../parts/fields-of.ts'
import { NameField, SaveOrLeave } from '../parts/record-form.tsx'
import { SelectorField } from '../run/selector-field.tsx'
import { EventPicker } from './event-picker.tsx'
import { webhookOf, webhookPatchOf } from './webhook-of.ts'
import { filtersSaid, formatsSaid } from './webhook-words.ts'

interface WebhookFormProps {
  /** Undefined: a new one is made. */
  webhook?: Webhook
  onSaved: (saved: WebhookSaved) => void
  onLeave: () => void
}

function WebhookFields({ webhook }: { webhook: Webhook | undefined }) {
  return (
    <>
      <NameField name={webhook?.name} placeholder="on call" />
      <Field
        name="url"
        label="URL"
        hint="https, to a public address; others only where the server allows them"
      >
        {(given) => (
          <input
            {...given}
            required
            maxLength={2048}
            spellcheck={false}
            autoCapitalize="off"
            autoComplete="off"
            placeholder="https://alerts.example.org/rsm"
            defaultValue={webhook?.url}
          />
        )}
      </Field>
      <EventPicker chosen={webhook?.events ?? []} />
      <SelectorField
        name="selector"
        label="Selector"
        hint="Only events of tasks and hosts that concern these hosts; empty: all"
        selector={webhook?.selector ?? ''}
      />
      {webhookFilters.map((filter) => (
        <Field key={filter} name={filter} label={filtersSaid[filter].label} hint={filtersSaid[filter].hint}>
          {(given) => (
            <input
              {...given}
              maxLength={128}
              spellcheck={false}
              autoCapitalize="off"
              autoComplete="off"
              defaultValue={webhook?.[filter] ?? ''}
            />
          )}
        </Field>
      ))}
      <div class="pair">
        <Field name="format" label="Format">
          {(given) => (
            <select {...given}>
              {webhookFormats.map((format) => (
                <option key={format} value={format} selected={format === webhook?.format}>
                  {formatsSaid[format]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          name="secret"
          label="Secret"
          hint={webhook ? 'Empty: stays as it is' : 'Empty: made by the server'}
        >
          {(given) => (
            <input
              {...given}
              type="password"
              class="code"
              autoComplete="new-password"
              placeholder="whsec_…"
            />
          )}
        </Field>
      </div>
    </>
  )
}

/** A webhook as a form: a new one, or one that is changed. */
export function WebhookForm({ webhook, onSaved, onLeave }: WebhookFormProps) {
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
        <SaveOrLeave makes={webhook ? undefined : 'webhook'} isBusy={isBusy} onLeave={onLeave} />
      </form>
    </FaultsOfForm.Provider>
  )
}
