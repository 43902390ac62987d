import { useId } from 'preact/hooks'
import { type WebhookEvent, webhookEvents } from '../../core/webhooks/webhook.ts'
import { Fault } from '../parts/fault.tsx'
import { useFault } from '../parts/field.tsx'
import { eventField } from './webhook-of.ts'
import { eventsSaid } from './webhook-words.ts'

/** Picks the events that a webhook gets. */
export function EventPicker({ chosen }: { chosen: readonly WebhookEvent[] }) {
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
              <small class="under">{eventsSaid[event]}</small>
            </span>
          </label>
        ))}
      </div>
      {fault !== undefined && <Fault text={fault} />}
    </div>
  )
}
