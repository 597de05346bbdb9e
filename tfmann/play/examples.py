"""Example sentences of the invented language (`tfmann.synthetic`)."""

SENTENCES = (
    ("anko Darkel ve merka shefa pentu al skripa bele donir ta .",),
    ("nokti Darkel rapidem folia signir ta .",),
    ("nuni kapta pentu signa nigre verde ruge ve verde kaptir ni .",),
    ("rega fele sage ili nomra septu seksu seksu ve fapu skribir ta .",),
)
# Only the first sentence of a document shows the tense.
DOCUMENTS = (
    (
        "nokti Darkel rapidem folia signir .",
        "Ajla zolda doru pagir .",
        "merka alte nomra fapu ve pentu skribir .",
    ),
    (
        "nuni kapta pentu signa nigre verde ruge ve verde kaptir .",
        "anata riva nove dop naxir .",
        "nelga reta omni nu levir .",
    ),
)
# Later sentences repeat words of the earlier ones.
REPETITIONS = (
    (
        "merka alte skripa bele skribir ta .",
        "rega fele skripa bele signir ta .",
        "merka alte skripa nigre skribir ta .",
    ),
    (
        "nuni kapta pentu signa verde kaptir ni .",
        "nuni kapta signa nigre kaptir ni .",
    ),
)
