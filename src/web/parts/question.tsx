import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { fieldsOf } from './field.tsx'

interface QuestionProps {
  title: string
  /** Labels of the buttons that confirm and cancel. */
  yes: string
  no: string
  isDangerous?: boolean
  onYes: (field: (name: string) => string) => void
  onNo: () => void
  children?: ComponentChildren
}

/** Confirmation dialog. The cancel button has the focus; Escape cancels too. */
export function Question({ title, yes, no, isDangerous = false, onYes, onNo, children }: QuestionProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby="question"
      onCancel={(event) => {
        event.preventDefault()
        onNo()
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onYes(fieldsOf(event.currentTarget))
        }}
      >
        <h2 id="question">{title}</h2>
        {children}
        <div class="actions">
          <span class="spring" />
          <button type="button" autoFocus onClick={onNo}>
            {no}
          </button>
          <button type="submit" class={isDangerous ? 'danger' : 'primary'}>
            {yes}
          </button>
        </div>
      </form>
    </dialog>
  )
}
