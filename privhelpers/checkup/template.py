"""The page of a report: its style, whose hash the page's own policy names, and its text in Jinja's language.

Whatever is inserted is escaped by the environment; no attribute holds text of a record or a model.
"""

STYLE = """
:root { color-scheme: light; --ink: #1d1d1f; --quiet: #5c5c61; --line: #d5d5da; --orange: #b35900; }
* { box-sizing: border-box; }
body { font: 15px/1.45 "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; color: var(--ink);
  background: #fff; max-width: 52rem; margin: 0 auto; padding: 1.2rem; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.1rem; margin: 1.1rem 0 .35rem; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; } p { margin: .35rem 0; }
ul { margin: .2rem 0; padding-left: 1.2rem; }
li { margin: .12rem 0; } .quiet { color: var(--quiet); font-size: .87em; }
.verdict { border: 2px solid var(--ink); border-left-width: 12px; padding: .5rem .9rem; margin: .7rem 0; }
.verdict.flagged { border-color: var(--orange); } .verdict.undecided { border-style: dashed; }
.verdict strong { font-size: 1.12rem; }
.figures { display: grid; grid-template-columns: repeat(3, 1fr); gap: .8rem; }
.figure { border: 1px solid var(--line); padding: .55rem .7rem; }
.figure h3 { margin: 0 0 .25rem; font-size: .93rem; } .figure p { font-size: .84rem; line-height: 1.35; }
.figure .big { font-size: 1.9rem; line-height: 1.15; font-weight: 650; margin: .2rem 0 0; }
.figure .big small { font-size: .9rem; font-weight: 400; color: var(--quiet); }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.4rem; }
.columns li { font-size: .88rem; }
table { border-collapse: collapse; width: 100%; font-size: .8rem; margin: .3rem 0 .2rem; }
th, td { text-align: left; padding: .22rem .45rem .22rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
thead th { border-bottom: 2px solid var(--ink); }
figure { margin: .6rem 0; } img { width: 100%; height: auto; }
figcaption { font-size: .84rem; color: var(--quiet); }
.i { white-space: nowrap; color: var(--quiet); }
code, pre { font: .82em/1.35 ui-monospace, "Liberation Mono", monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; border: 1px solid var(--line); padding: .4rem .6rem; margin: .3rem 0; }
.scroll { overflow-x: auto; }
@media (max-width: 42rem) { .figures, .columns { grid-template-columns: 1fr; } }
@media print {
  @page { size: A4; margin: 14mm 15mm; }
  html { font-size: 10.8pt; } body { font-size: 10pt; line-height: 1.36; padding: 0; max-width: none; }
  .details { break-before: page; } h2 { margin-top: .8rem; } img { max-height: 92mm; }
  tr, figure, .figure, h2, h3, pre { break-inside: avoid; }
  h2, h3 { break-after: avoid; } .scroll { overflow: visible; }
}
"""

_SUMMARY = """
<header>
<h1>Privacy audit of the language model &ldquo;{{ r.model.name }}&rdquo;</h1>
<p class="quiet">What does it give away about the {{ "{:,}".format(r.data[0].patients) }} patients of
{{ r.data[0].file }}? Held-out patients for comparison: {{ r.data[1].file }}.
{%- if r.made %} Made on {{ r.made }}.{% endif %}</p>
</header>
<section class="verdict {{ r.outcome.split()[0] }}" aria-label="Verdict">
<strong>{{ r.headline }}</strong>
{% for reason in r.reasons %}<p>{{ reason }}</p>{% endfor %}
<p class="quiet">{{ r.sensitivity.sentence }}
A model that learned nothing of its records is flagged in at most {{ "{:g}".format(100 * r.settings.alarm) }}
of 100 audits.</p>
</section>
<section aria-label="Key figures">
<div class="figures">
{% for f in r.key_figures %}
<div class="figure"><h3>{{ f.question }}</h3><p>{{ f.sentence }}</p>
<p class="big">{{ f.value }} <small>of 100</small></p>
<p class="quiet">95 % interval: {{ f.interval }}</p>
<p><b>{{ f.control_figures.value }}</b> {{ f.control }}
{%- if f.control_figures.interval %} ({{ f.control_figures.interval }}){% endif %}
{%- if f.guessing %}; guessing: {{ f.guessing }}{% endif %}.</p></div>
{% endfor %}
</div>
<p class="quiet">A figure means something only beside its control, in the last line of each box: what the
same
attack finds where there is nothing to find.
{% if r.outcome == "undecided" %}Here the files differ by themselves, so the figures do not judge the model.
{% endif %}</p>
</section>
<section class="columns">
<div><h2>What was tested</h2><ul>{% for t in r.tested %}<li>{{ t }}</li>{% endfor %}</ul></div>
<div><h2>What was not</h2><ul>{% for t in r.not_tested %}<li>{{ t }}</li>{% endfor %}</ul></div>
</section>
<section><h2>What to do next</h2><ul>{% for t in r.next %}<li>{{ t }}</li>{% endfor %}</ul></section>
"""

_ATTACKS = """
<h2>Details</h2>
<p>Every figure below is on the scale 0 to 1. An <i>area</i> (AUC) is the chance that a trained patient
scores
above another one: 0.5 is guessing, 1 is always. Brackets are 95 % intervals that resample whole
patients.</p>
<h3>Who was in the records: areas by attack</h3>
<div class="scroll"><table><thead><tr><th>score</th><th class="n">patients</th><th class="n">single
notes</th>
<th class="n">control: trained on nothing</th><th class="n">control: held-out halves</th>
<th class="n">control: labels dealt anew</th></tr></thead><tbody>
{% for a in r.attacks %}<tr><td>{{ a.words }}</td><td class="n">{{ three(a.patient.auc) }}</td>
<td class="n">{{ three(a.note.auc) }}</td>
<td class="n">{% if a.controls.untrained %}{{ three(a.controls.untrained.auc) }}{% else %}not asked{%
endif %}</td>
<td class="n">{{ three(a.controls.held_out) }}</td><td class="n">{{ three(a.controls.permuted) }}</td></tr>
{% endfor %}</tbody></table></div>
<h3>Who can be named: share of trained patients at few wrong accusations</h3>
<div class="scroll"><table><thead><tr><th>score</th><th class="n">at 1 in 100</th><th class="n">at 1 in
1,000</th>
<th class="n">control at 1 in 100: trained on nothing</th></tr></thead><tbody>
{% for a in r.attacks %}<tr><td>{{ a.words }}</td><td class="n">{{ three(a.patient.tpr_at_1pct_fpr) }}</td>
<td class="n">{{ three(a.patient.tpr_at_01pct_fpr) }}</td>
<td class="n">{% if a.controls.untrained %}{{ three(a.controls.untrained.tpr_at_1pct_fpr) }}
{%- else %}not asked{% endif %}</td></tr>
{% endfor %}</tbody></table></div>
{% for caption, address in pictures.items() %}
<figure><img src="{{ address }}" alt="{{ caption }}"><figcaption>{{ caption }}</figcaption></figure>
{% endfor %}
<h3>Every test</h3>
<p>p is the chance of so much, or more, if training on these records left no trace. Holm's correction pays
for
the number of tests; a model is flagged at {{ "{:g}".format(r.settings.alarm) }} or below.</p>
<table><thead><tr><th>test</th><th class="n">p</th><th class="n">p, corrected</th></tr></thead><tbody>
{% for t in r.tests %}<tr><td>{{ t.name }}</td><td class="n">{{ t.p|small }}</td>
<td class="n">{{ t.adjusted|small }}</td></tr>
{% endfor %}</tbody></table>
<h3>Could anything else explain a difference?</h3>
<p>Two programs that never see the model try to tell the files apart by the texts alone, each judging
patients that it did not learn from. If they can, the files differ in more than membership.</p>
<table><thead><tr><th>without the model</th><th class="n">area</th><th class="n">p</th></tr></thead><tbody>
{% for b in r.blind %}<tr><td>{{ {"words": "words and letters of the notes", "shape":
"number, length and make-up of the notes"}[b.name] }}</td><td class="n">{{ three(b.auc) }}</td>
<td class="n">{{ b.p|small }}</td></tr>
{% endfor %}</tbody></table>
{% for e in r.explanations %}<p>{{ e }}</p>{% endfor %}
"""

_MEMORY = """
<h3>What the model gives back</h3>
<table><thead><tr><th>what</th><th class="n">trained</th><th class="n">held out</th><th
class="n">p</th></tr>
</thead><tbody>
<tr><td>share of words guessed right at the first try</td><td class="n">{{ three(r.guessed.members) }}</td>
<td class="n">{{ three(r.guessed.held_out) }}</td><td class="n"></td></tr>
{% for what, c in (("patients with a note completed word for word", r.completed),
("patients named by a number, address or declared string in what it wrote", r.named)) if c %}
<tr><td>{{ what }}</td><td class="n">{{ counted(c.by_patient.members) }}</td>
<td class="n">{{ counted(c.by_patient.held_out) }}</td><td class="n">{{ c.by_patient.p|small }}</td></tr>
{% endfor %}</tbody></table>
{% if r.completed %}<p>Notes completed: {{ r.completed.notes[0] }} of {{ r.completed.notes[1] }} of the
trained
patients, {{ r.completed.held_out_notes[0] }} of {{ r.completed.held_out_notes[1] }} of the held-out ones;
{{ r.completed.too_short }} notes were too short to ask.
{% if r.completed.lines %}Lines of {{ r.data[0].file }} that it completes:
{{ r.completed.lines[:60]|join(", ") }}{% if r.completed.lines|length > 60 %} and more (all in report.json)
{%- endif %}.{% endif %}</p>{% endif %}
{% if r.named %}<p>It wrote {{ r.named.texts }} texts, {{ r.named.distinct }} of them different; looked
for were
{{ r.named.strings[0] }} strings of trained and {{ r.named.strings[1] }} of held-out patients.</p>{% endif
%}
{% if r.canaries %}<h3>Canaries</h3>
<p>{{ r.canaries.inserted }} were trained on and {{ r.canaries.kept_out }} kept out, by a coin. Area
between the
two: {{ three(r.canaries.auc) }}, p = {{ r.canaries.p|small }}.</p>
{% with c = r.canaries.claim %}{% if c %}
<p>Claimed: epsilon {{ "{:g}".format(c.epsilon) }} at delta {{ "{:g}".format(c.delta) }}, for one record
more or
less. Certified from below: {{ c.method }}. Perfect guesses at so many canaries would certify
{{ "{:.2f}".format(c.most_certifiable) }}.
{{ "The claim is refuted." if c.refuted else "The claim is not refuted, which does not prove it." }}</p>
{% endif %}{% endwith %}{% endif %}
{% if shown %}<h3>Confidential: what the model wrote</h3>
<p>Somebody asked for these texts; they make this report as confidential as the records.</p>
{% if shown.strings %}<p>Strings of trained patients that it wrote:</p>
<pre>{% for s in shown.strings %}{{ s }}
{% endfor %}</pre>{% endif %}
{% for t in shown.texts %}<pre>{{ t }}</pre>
{% endfor %}{% endif %}
"""

_MATERIAL = """
<h3>What it was made of</h3>
<table><thead><tr><th>file</th><th>role</th><th class="n">lines</th><th class="n">repeats</th>
<th class="n">patients</th><th class="n">asked</th><th class="n">notes asked</th><th class="n">characters
a note</th>
</tr></thead><tbody>
{% for d in r.data %}<tr><td>{{ d.file }}</td><td>{{ d.role }}</td><td class="n">{{ d.lines }}</td>
<td class="n">{{ d.repeated_lines }}</td><td class="n">{{ d.patients }}</td><td
class="n">{{ d.patients_asked }}</td>
<td class="n">{{ d.notes_asked }}</td><td class="n">{{ "{:.0f}".format(d.mean_characters) }}</td></tr>
{% endfor %}</tbody></table>
<p>{{ r.truncated }} notes were longer than the {{ r.model.context }} tokens that are read,
{{ r.left_out }} could
not be read at all. Model: {{ r.model.kind }} language model of type {{ r.model.type }},
{{ "{:,}".format(r.model.parameters) }} weights; reference model: {{ r.model.reference or "none" }}.</p>
<p>Settings: {% for name, value in r.settings.items() %}{{ name }} = {{ value }}{{ ", " if not loop.last }}
{%- endfor %}. Versions: {% for name, value in r.versions.items() %}{{ name }}
{{ value }}{{ ", " if not loop.last }}
{%- endfor %}.</p>
<table><thead><tr><th>file</th><th>SHA-256</th></tr></thead><tbody>
{% for d in r.data %}<tr><td>{{ d.file }}</td><td><code>{{ d.sha256 }}</code></td></tr>
{% endfor %}
{% if r.canary_file
%}<tr><td>{{ r.canary_file.file }}</td><td><code>{{ r.canary_file.sha256 }}</code></td></tr>
{% endif %}
{% for name, digest in r.model.files.items()
%}<tr><td>{{ name }}</td><td><code>{{ digest }}</code></td></tr>
{% endfor %}</tbody></table>
"""

PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src data:; style-src 'sha256-{{{{ style_hash }}}}'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<title>Privacy audit: {{{{ r.model.name }}}}</title><style>{{{{ style }}}}</style></head><body>
{{% macro three(v) %}}{{{{ v[0]|rate }}}} <span class="i">[{{{{ v[1]|rate }}}}, {{{{ v[2]|rate }}}}]</span>
{{%- endmacro %}}
{{% macro counted(v) %}}{{{{ v[0] }}}} of {{{{ v[1] }}}}
<span class="i">[{{{{ v[2]|rate }}}}, {{{{ v[3]|rate }}}}]</span>{{%- endmacro %}}
<main><div class="summary">{_SUMMARY}</div><div class="details">{_ATTACKS}{_MEMORY}{_MATERIAL}</div></main>
</body></html>
"""
