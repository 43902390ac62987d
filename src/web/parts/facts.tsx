import type { ComponentChildren } from 'preact'

interface FactsProps {
  /** Null: nothing is said of it. */
  rows: readonly (readonly [label: string, value: ComponentChildren | null])[]
}

/** What there is to know of one thing, by name. */
export function Facts({ rows }: FactsProps) {
  return (
    <dl class="facts">
      {rows.map(
        ([label, value]) =>
          value !== null && (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
