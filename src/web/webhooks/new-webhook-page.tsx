import { useState } from 'preact/hooks'
import type { WebhookSaved } from '../../core/protocol/http/webhooks.ts'
import { useTitle } from '../parts/use-title.ts'
import { go } from '../route.ts'
import { SecretShown } from './secret-shown.tsx'
import { WebhookForm } from './webhook-form.tsx'

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
        onLeave={() => go('webhooks')}
      />
      {saved && <SecretShown name={saved.name} secret={saved.secret ?? ''} onDone={() => open(saved)} />}
    </section>
  )
}
