import type { Webhook } from '../../core/protocol/http/webhooks.ts'
import { all } from '../api.ts'
import { useTitle } from '../parts/browser.ts'
import { Badge, Fault, LongName } from '../parts/shown.tsx'
import { usePolled } from '../parts/use-polled.ts'
import { go, hrefOf } from '../route.ts'

export const stateOf = ({ enabled }: Webhook) => (enabled ? 'ENABLED' : 'DISABLED')

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
