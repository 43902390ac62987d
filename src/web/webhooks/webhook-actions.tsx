import { useState } from 'preact/hooks'
import type { Webhook, WebhookSaved, WebhookTest } from '../../core/protocol/http/webhooks.ts'
import { call, errorText } from '../api.ts'
import { Question } from '../parts/shown.tsx'
import { go } from '../route.ts'

export interface Outcome {
  text: string
  isGood: boolean
}

interface WebhookActionsProps {
  webhook: Webhook
  onOutcome: (outcome: Outcome | undefined) => void
  onSaved: (saved: WebhookSaved) => void
  onEdit: () => void
}

const testOutcome = ({ delivered, status, error }: WebhookTest): Outcome => ({
  text: delivered ? `Delivered: the receiver answered ${status}.` : `Not delivered: ${error}.`,
  isGood: delivered,
})

export function WebhookActions({ webhook, onOutcome, onSaved, onEdit }: WebhookActionsProps) {
  const [asked, setAsked] = useState<'secret' | 'delete' | undefined>()
  const [isTesting, setTesting] = useState(false)
  const path = `api/webhooks/${webhook.id}`
  const { name, enabled } = webhook
  function act<T>(work: Promise<T>, then: (answer: T) => void): void {
    setAsked(undefined)
    onOutcome(undefined)
    work
      .then(then, (error: unknown) => onOutcome({ text: errorText(error), isGood: false }))
      .finally(() => setTesting(false))
  }
  const change = (body: object) => act(call<WebhookSaved>('PATCH', path, { body }), onSaved)
  function test(): void {
    setTesting(true)
    act(call<WebhookTest>('POST', `${path}/test`), (outcome) => onOutcome(testOutcome(outcome)))
  }
  return (
    <>
      <button type="button" disabled={isTesting} onClick={test}>
        {isTesting ? 'Sending …' : 'Send a test'}
      </button>
      <button type="button" onClick={() => change({ enabled: !enabled })}>
        {enabled ? 'Disable' : 'Enable'}
      </button>
      <button type="button" onClick={onEdit}>
        Edit
      </button>
      <button type="button" onClick={() => setAsked('secret')}>
        New secret
      </button>
      <button type="button" class="danger" onClick={() => setAsked('delete')}>
        Delete
      </button>
      {asked === 'secret' && (
        <Question
          title={`Generate a new secret for ‘${name}’?`}
          yes="Generate"
          no="Keep this one"
          isDangerous
          onNo={() => setAsked(undefined)}
          onYes={() => change({ secret: null })}
        >
          <p>The next delivery attempt uses the new secret.</p>
        </Question>
      )}
      {asked === 'delete' && (
        <Question
          title={`Delete the webhook ‘${name}’?`}
          yes="Delete it"
          no="Keep it"
          isDangerous
          onNo={() => setAsked(undefined)}
          onYes={() => act(call('DELETE', path), () => go('webhooks'))}
        >
          <p>Its pending deliveries are removed too.</p>
        </Question>
      )}
    </>
  )
}
