import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel("Order", [("id", models.BigAutoField(primary_key=True)), ("email", models.EmailField(max_length=254))]),
        migrations.CreateModel("Invoice", [
            ("id", models.BigAutoField(primary_key=True)),
            ("order", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to="orders.order")),
        ]),
    ]
